//! The host's table: from the data set into the database once, and back out row by row. Who may ask
//! for rows is decided elsewhere.

use std::path::Path;

use postern_proto::penguins::{Query, Row};
use rusqlite::{Connection, OpenFlags, params};

use crate::error::DemoError;

const COLUMNS: [&str; 8] = [
    "species",
    "island",
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
    "sex",
    "year",
];

const TABLE: &str = "CREATE TABLE penguins (
    species TEXT NOT NULL,
    island TEXT NOT NULL,
    bill_length_mm REAL,
    bill_depth_mm REAL,
    flipper_length_mm INTEGER,
    body_mass_g INTEGER,
    sex TEXT,
    year INTEGER NOT NULL
) STRICT";

const INSERT: &str = "INSERT INTO penguins VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// A query's conditions; nothing of the guest's is ever part of a statement.
macro_rules! fitting {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " WHERE (?1 IS NULL OR species = ?1) AND (?2 IS NULL OR island = ?2) AND (NOT ?3 OR \
             (bill_length_mm IS NOT NULL AND bill_depth_mm IS NOT NULL AND \
             flipper_length_mm IS NOT NULL AND body_mass_g IS NOT NULL))",
            $after
        )
    };
}

const SELECT: &str = fitting!("SELECT * FROM penguins", " ORDER BY rowid LIMIT ?4");
const DELETE: &str = fitting!("DELETE FROM penguins", "");

/// Makes the database of the data set's file, row by row and checked.
pub(crate) fn load(table: &Path, database: &Path) -> Result<(), DemoError> {
    let failed = |source| DemoError::Database { what: "make the database", source };
    let mut reader = csv::Reader::from_path(table).map_err(DemoError::Csv)?;
    let wrong = |line, what| DemoError::Table { path: table.to_owned(), line, what };
    let header = reader.headers().map_err(DemoError::Csv)?;
    if header != COLUMNS.as_slice() {
        return Err(wrong(1, "the columns are others"));
    }
    let mut connection = Connection::open(database).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    transaction.execute_batch(TABLE).map_err(failed)?;
    let mut insert = transaction.prepare(INSERT).map_err(failed)?;
    for (record, line) in reader.records().zip(2..) {
        let record = record.map_err(DemoError::Csv)?;
        let row = row(&record).ok_or_else(|| wrong(line, "a value is missing or no number"))?;
        let values = params![
            row.species,
            row.island,
            row.bill_length_mm,
            row.bill_depth_mm,
            row.flipper_length_mm,
            row.body_mass_g,
            row.sex,
            row.year
        ];
        insert.execute(values).map_err(failed)?;
    }
    drop(insert);
    transaction.commit().map_err(failed)
}

fn row(record: &csv::StringRecord) -> Option<Row> {
    let text = |column| record.get(column).filter(|text| *text != "NA");
    /// `None` inside where nothing was measured.
    fn number<T: std::str::FromStr>(text: Option<&str>) -> Option<Option<T>> {
        text.map(|text| text.parse().ok()).map_or(Some(None), |number| number.map(Some))
    }
    Some(Row {
        species: text(0)?.to_owned(),
        island: text(1)?.to_owned(),
        bill_length_mm: number(text(2))?,
        bill_depth_mm: number(text(3))?,
        flipper_length_mm: number(text(4))?,
        body_mass_g: number(text(5))?,
        sex: text(6).map(str::to_owned),
        year: text(7)?.parse().ok()?,
    })
}

/// Hands over the rows that fit, in the order of the table, until `take` has enough.
pub(crate) fn rows(
    database: &Path,
    query: &Query,
    take: &mut dyn FnMut(Row) -> bool,
) -> rusqlite::Result<()> {
    let connection = read_only(database)?;
    let mut select = connection.prepare(SELECT)?;
    let most = match query.rows_max {
        0 => -1,
        rows => i64::from(rows),
    };
    let mut found = select.query(params![query.species, query.island, query.measured, most])?;
    while let Some(found) = found.next()? {
        let row = Row {
            species: found.get(0)?,
            island: found.get(1)?,
            bill_length_mm: found.get(2)?,
            bill_depth_mm: found.get(3)?,
            flipper_length_mm: found.get(4)?,
            body_mass_g: found.get(5)?,
            sex: found.get(6)?,
            year: found.get(7)?,
        };
        if !take(row) {
            break;
        }
    }
    Ok(())
}

/// Removes the rows that fit, and says how many they were.
pub(crate) fn remove(database: &Path, query: &Query) -> rusqlite::Result<usize> {
    let connection = Connection::open(database)?;
    connection.execute(DELETE, params![query.species, query.island, query.measured])
}

/// How many rows there are.
pub(crate) fn count(database: &Path) -> Result<u64, DemoError> {
    let counted = read_only(database).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM penguins", [], |row| row.get::<_, i64>(0))
    });
    let counted = counted.map_err(DemoError::database("count the rows of the database"))?;
    Ok(counted.unsigned_abs())
}

fn read_only(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(database, flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::tests::{TABLE, database};

    fn found(query: &Query) -> Vec<String> {
        let (_directory, path) = database();
        let mut found = Vec::new();
        rows(&path, query, &mut |row| {
            found.push(format!("{} {} {:?}", row.species, row.island, row.body_mass_g));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn a_query_gets_what_fits() {
        let query = Query::default;
        let all = ["Adelie Torgersen Some(3750)", "Adelie Dream None", "Gentoo Biscoe Some(5000)"];
        let rows: [(&str, Query, &[&str]); 7] = [
            ("all", query(), &all),
            ("a species", Query { species: Some("Gentoo".into()), ..query() }, &all[2..]),
            ("an island", Query { island: Some("Dream".into()), ..query() }, &all[1..2]),
            ("measured", Query { measured: true, ..query() }, &[all[0], all[2]]),
            ("so many", Query { rows_max: 2, ..query() }, &all[..2]),
            ("no such", Query { species: Some("Emperor".into()), ..query() }, &[]),
            ("no SQL", Query { species: Some("x' OR '1' = '1".into()), ..query() }, &[]),
        ];
        for (name, query, expected) in rows {
            assert_eq!(found(&query), expected, "{name}");
        }
    }

    #[test]
    fn a_table_that_is_another_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("penguins.csv");
        let rows = [
            (TABLE.replace("species,", "kind,"), "line 1: the columns are others"),
            (TABLE.replace("3750", "heavy"), "line 2: a value is missing or no number"),
            (TABLE.replace("Gentoo,", "NA,"), "line 4: a value is missing or no number"),
        ];
        for (at, (text, words)) in rows.into_iter().enumerate() {
            std::fs::write(&file, text).unwrap();
            let error = load(&file, &directory.path().join(at.to_string())).unwrap_err();
            assert!(error.to_string().ends_with(words), "{error}");
        }
    }
}
