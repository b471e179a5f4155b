//! The tables `base_models` and `base_model_files`, which workers fill.

use std::collections::BTreeMap;

use trainyard_protocol::BaseModel;

use super::db::{Conn, column, sql};
use super::{failed, from_json, to_json};
use crate::Error;

/// Files of a model by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Publishes a base model; replaces an earlier one.
pub(crate) async fn put_base_model(conn: &mut Conn, model: &BaseModel, files: &Files) -> Result<(), Error> {
    const MODEL: &str = "-- put_base_model
        INSERT INTO base_models (name, description) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET description = excluded.description";
    const CLEAR: &str = "-- put_base_model: clear
        DELETE FROM base_model_files WHERE model = $1";
    const FILE: &str = "-- put_base_model: file
        INSERT INTO base_model_files (model, name, content) VALUES ($1, $2, $3)";
    let doing = || failed("publish a base model");
    let name = model.name.as_str();
    sql(MODEL).bind(name).bind(to_json(model)?).execute(conn).await.map_err(doing())?;
    sql(CLEAR).bind(name).execute(conn).await.map_err(doing())?;
    for (file, content) in files {
        sql(FILE).bind(name).bind(file.as_str()).bind(content.as_slice()).execute(conn).await.map_err(doing())?;
    }
    Ok(())
}

/// Returns all base models that workers have published.
pub(crate) async fn base_models(conn: &mut Conn) -> Result<Vec<BaseModel>, Error> {
    const SQL: &str = "-- base_models
        SELECT description FROM base_models ORDER BY name";
    let rows = sql(SQL).fetch_all(conn).await.map_err(failed("list base models"))?;
    rows.iter().map(|row| from_json(row, "description")).collect()
}

/// Returns the tokenizer and configuration files of a base model.
pub(crate) async fn base_model_files(conn: &mut Conn, model: &str) -> Result<Files, Error> {
    const SQL: &str = "-- base_model_files
        SELECT name, content FROM base_model_files WHERE model = $1";
    let rows = sql(SQL).bind(model).fetch_all(conn).await.map_err(failed("read a base model's files"))?;
    rows.iter().map(|row| Ok((column(row, "name")?, column(row, "content")?))).collect()
}
