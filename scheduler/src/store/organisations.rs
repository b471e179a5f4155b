//! The tables `organisations`, `projects` and `users`.

use trainyard_protocol::TenantId;

use super::db::{Conn, Row, column, sql};
use super::{failed, parsed};
use crate::{Error, Membership, NewUser, Organisation, Project, Role, Timestamp, User};

/// Creates an organisation. Returns false if the name is taken.
pub(crate) async fn insert_organisation(
    conn: &mut Conn,
    name: &TenantId,
    operator: bool,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- insert_organisation
        INSERT INTO organisations (name, operator, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let done = sql(SQL).bind(name.as_str()).bind(operator).bind(now.0).execute(conn).await;
    Ok(done.map_err(failed("create an organisation"))? == 1)
}

/// Returns all organisations by name, or only the one with the given name.
pub(crate) async fn organisations(conn: &mut Conn, name: Option<&TenantId>) -> Result<Vec<Organisation>, Error> {
    const SQL: &str = "-- organisations
        SELECT name, display_name, operator, created_at, disabled_at FROM organisations
        WHERE $1 IS NULL OR name = $1 ORDER BY name";
    let rows = sql(SQL).bind(name.map(TenantId::as_str)).fetch_all(conn).await.map_err(failed("list organisations"))?;
    let organisation = |row: &Row| {
        Ok(Organisation {
            name: TenantId::new(column::<String>(row, "name")?),
            display_name: column(row, "display_name")?,
            operator: column(row, "operator")?,
            created_at: Timestamp(column(row, "created_at")?),
            disabled_at: column::<Option<i64>>(row, "disabled_at")?.map(Timestamp),
        })
    };
    rows.iter().map(organisation).collect()
}

/// Changes the display name of an organisation, and whether it is disabled, if they are given. The time since which an
/// organisation is disabled stays the same.
pub(crate) async fn update_organisation(
    conn: &mut Conn,
    name: &TenantId,
    display_name: Option<&str>,
    disabled: Option<bool>,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- update_organisation
        UPDATE organisations SET display_name = coalesce($2, display_name),
            disabled_at = CASE WHEN $3 THEN coalesce(disabled_at, $5) WHEN $4 THEN NULL ELSE disabled_at END
        WHERE name = $1";
    let done = sql(SQL)
        .bind(name.as_str())
        .bind(display_name)
        .bind(disabled == Some(true))
        .bind(disabled == Some(false))
        .bind(now.0)
        .execute(conn)
        .await;
    match done.map_err(failed("change an organisation"))? {
        0 => Err(Error::not_found("organisation", name)),
        _ => Ok(()),
    }
}

/// Refuses an organisation that does not exist.
pub(crate) async fn ensure_organisation(conn: &mut Conn, name: &TenantId) -> Result<(), Error> {
    const SQL: &str = "-- ensure_organisation
        SELECT 1 FROM organisations WHERE name = $1";
    let found = sql(SQL).bind(name.as_str()).fetch_optional(conn).await.map_err(failed("find an organisation"))?;
    found.map(drop).ok_or_else(|| Error::not_found("organisation", name))
}

/// Returns whether an organisation is an operator, with its user of this email; `None` for an unknown name.
pub(crate) async fn membership(
    conn: &mut Conn,
    name: &TenantId,
    email: Option<&str>,
) -> Result<Option<Membership>, Error> {
    const SQL: &str = "-- membership
        SELECT operator, users.id AS id, users.email AS email, users.name AS name, users.role AS role,
            users.created_at AS created_at, users.disabled_at AS disabled_at
        FROM organisations LEFT JOIN users ON users.organisation = organisations.name AND users.email = $2
        WHERE organisations.name = $1";
    let row = sql(SQL).bind(name.as_str()).bind(email).fetch_optional(conn).await;
    let row = row.map_err(failed("find a member of an organisation"))?;
    row.as_ref()
        .map(|row| {
            let user = column::<Option<String>>(row, "id")?.map(|_| to_user(row)).transpose()?;
            Ok(Membership { operator: column(row, "operator")?, user })
        })
        .transpose()
}

/// Creates a project. Returns false if the id is taken.
pub(crate) async fn insert_project(
    conn: &mut Conn,
    organisation: &TenantId,
    id: &str,
    name: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- insert_project
        INSERT INTO projects (organisation, id, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let done = sql(SQL).bind(organisation.as_str()).bind(id).bind(name).bind(now.0).execute(conn).await;
    Ok(done.map_err(failed("create a project"))? == 1)
}

/// Deletes a project. Returns false if the id is unknown.
pub(crate) async fn delete_project(conn: &mut Conn, organisation: &TenantId, id: &str) -> Result<bool, Error> {
    const SQL: &str = "-- delete_project
        DELETE FROM projects WHERE organisation = $1 AND id = $2";
    let done = sql(SQL).bind(organisation.as_str()).bind(id).execute(conn).await;
    Ok(done.map_err(failed("delete a project"))? == 1)
}

/// Returns the projects of an organisation, by id.
pub(crate) async fn projects(conn: &mut Conn, organisation: &TenantId) -> Result<Vec<Project>, Error> {
    const SQL: &str = "-- projects
        SELECT id, name, created_at FROM projects WHERE organisation = $1 ORDER BY id";
    let rows = sql(SQL).bind(organisation.as_str()).fetch_all(conn).await.map_err(failed("list projects"))?;
    let project = |row: &Row| {
        Ok(Project {
            id: column(row, "id")?,
            name: column(row, "name")?,
            created_at: Timestamp(column(row, "created_at")?),
        })
    };
    rows.iter().map(project).collect()
}

/// Creates a user. Returns false if the organisation has one with this email.
pub(crate) async fn insert_user(
    conn: &mut Conn,
    organisation: &TenantId,
    id: &str,
    new: &NewUser,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- insert_user
        INSERT INTO users (id, organisation, email, name, role, created_at) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT DO NOTHING";
    let done = sql(SQL)
        .bind(id)
        .bind(organisation.as_str())
        .bind(new.email.as_str())
        .bind(new.name.as_str())
        .bind(new.role.as_str())
        .bind(now.0)
        .execute(conn)
        .await;
    Ok(done.map_err(failed("create a user"))? == 1)
}

/// Changes a user's role and whether the user is disabled, if they are given. Returns false for an unknown user.
pub(crate) async fn update_user(
    conn: &mut Conn,
    organisation: &TenantId,
    email: &str,
    role: Option<Role>,
    disabled_at: Option<Option<Timestamp>>,
) -> Result<bool, Error> {
    const SQL: &str = "-- update_user
        UPDATE users SET role = coalesce($3, role), disabled_at = CASE WHEN $4 THEN $5 ELSE disabled_at END
        WHERE organisation = $1 AND email = $2";
    let done = sql(SQL)
        .bind(organisation.as_str())
        .bind(email)
        .bind(role.map(Role::as_str))
        .bind(disabled_at.is_some())
        .bind(disabled_at.flatten().map(Timestamp::as_millis))
        .execute(conn)
        .await;
    Ok(done.map_err(failed("change a user"))? == 1)
}

/// Returns the users of an organisation by email, or only the one with the given email.
pub(crate) async fn users(conn: &mut Conn, organisation: &TenantId, email: Option<&str>) -> Result<Vec<User>, Error> {
    const SQL: &str = "-- users
        SELECT id, email, name, role, created_at, disabled_at FROM users
        WHERE organisation = $1 AND ($2 IS NULL OR email = $2) ORDER BY email";
    let rows = sql(SQL).bind(organisation.as_str()).bind(email).fetch_all(conn).await.map_err(failed("list users"))?;
    rows.iter().map(to_user).collect()
}

fn to_user(row: &Row) -> Result<User, Error> {
    Ok(User {
        id: column(row, "id")?,
        email: column(row, "email")?,
        name: column(row, "name")?,
        role: parsed(row, "role", Role::from_text)?,
        created_at: Timestamp(column(row, "created_at")?),
        disabled_at: column::<Option<i64>>(row, "disabled_at")?.map(Timestamp),
    })
}
