//! Statements for several rows at once, because a round trip for each row costs more than the work.

use super::Conn;
use super::query::{Row, Sql};
use super::value::Value;

/// Numbers of rows for which a statement exists, so that databases prepare only a few.
const SIZES: [usize; 3] = [4, 16, 64];

/// A statement over rows of parameters. `{rows}` in its text is replaced by a `VALUES` table, whose columns both
/// databases name `column1`, `column2` and so on.
///
/// The table is padded with rows of NULLs, which the statement must skip.
pub(crate) struct Bulk {
    columns: usize,
    texts: [String; SIZES.len()],
}

impl Bulk {
    /// Makes a statement over rows of `columns` columns.
    pub(crate) fn new(columns: usize, text: &str) -> Self {
        Self { columns, texts: SIZES.map(|rows| text.replace("{rows}", &table(columns, rows))) }
    }

    /// Executes the statement in as many batches as the rows need, and returns its result rows.
    pub(crate) async fn fetch_all(
        &'static self,
        conn: &mut Conn,
        rows: Vec<Vec<Value<'_>>>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let mut answer = Vec::with_capacity(rows.len());
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let size = SIZES.iter().position(|size| *size >= rows.len()).unwrap_or(SIZES.len() - 1);
            let mut values = Vec::with_capacity(SIZES[size] * self.columns);
            values.extend(rows.by_ref().take(SIZES[size]).flatten());
            while values.len() < SIZES[size] * self.columns {
                let absent = values[values.len() - self.columns].absent();
                values.push(absent);
            }
            answer.extend(Sql::of(&self.texts[size], values).fetch_all(conn).await?);
        }
        Ok(answer)
    }
}

/// Returns a table, `VALUES ($1, $2), ($3, $4)`.
fn table(columns: usize, rows: usize) -> String {
    let row = |row: usize| {
        let parameters: Vec<String> = (1..=columns).map(|column| format!("${}", row * columns + column)).collect();
        format!("({})", parameters.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("VALUES {}", rows.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::LazyLock;

    use super::super::{Database, column, connect};
    use super::*;

    #[test]
    fn rows_are_numbered_one_after_the_other() {
        assert_eq!(table(2, 3), "VALUES ($1, $2), ($3, $4), ($5, $6)");
    }

    #[tokio::test]
    async fn any_number_of_rows_is_seen_once_and_in_order() {
        static ECHO: LazyLock<Bulk> = LazyLock::new(|| {
            Bulk::new(
                3,
                "SELECT column1, column2, column3 FROM ({rows}) AS new WHERE column1 IS NOT NULL ORDER BY column1",
            )
        });
        let mut conn = connect(&Database::Sqlite(":memory:".into())).await.unwrap();
        for count in [0, 1, 3, 4, 5, 16, 17, 64, 65, 150] {
            let rows = (0..count).map(|i| vec![Value::from(i), Value::from(format!("t{i}")), Value::from(i % 2 == 0)]);
            let seen = ECHO.fetch_all(&mut conn, rows.collect()).await.unwrap();
            let seen: Vec<(i64, String, bool)> = seen
                .iter()
                .map(|row| {
                    let get = (column(row, "column1"), column(row, "column2"), column(row, "column3"));
                    (get.0.unwrap(), get.1.unwrap(), get.2.unwrap())
                })
                .collect();
            let expected: Vec<_> = (0..count).map(|i| (i, format!("t{i}"), i % 2 == 0)).collect();
            assert_eq!(seen, expected);
        }
    }
}
