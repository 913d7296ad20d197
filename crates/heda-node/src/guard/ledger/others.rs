//! Other data sets in the same ledger: a data set that is renamed would begin with a fresh budget
//! although its rows are the same.

use super::private::{PrivateCap, report};
use super::{Ledger, LedgerError, LedgerReader, account, decimal};
use rusqlite::{Connection, params};
use serde::Serialize;

/// Another data set that the ledger knows, and what it was charged for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherSpent {
    /// Its name.
    pub data_set: String,
    /// What this provider serves now is called so.
    pub renamed_to: String,
    /// Whether a job on it had the very rows that are served now.
    pub same_rows: bool,
    /// ε of its private jobs, at the δ of the configuration; none beyond 1000.
    pub epsilon: Option<f64>,
    /// ε of what was published of it, as a decimal.
    pub published: String,
}

impl std::fmt::Display for OtherSpent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let private = match self.epsilon {
            Some(epsilon) => format!("{:.2}", (epsilon * 100.0).ceil() / 100.0),
            None => "more than 1000".to_owned(),
        };
        let (before, now) = (&self.data_set, &self.renamed_to);
        write!(
            f,
            "this ledger also knows the data set {before}, on which private jobs used epsilon \
             {private} and publishing {}. ",
            self.published
        )?;
        match self.same_rows {
            true => write!(
                f,
                "Its rows are those that are served now as {now}: a new name gives them no new \
                 budget. Call the data set {before} again, or lower the totals of {now} by what was used."
            ),
            false => write!(
                f,
                "If {now} holds the same people, their costs add up: lower its totals by what was used."
            ),
        }
    }
}

impl OtherSpent {
    /// The others of a ledger that is only read; `digest` is that of the rows that are served.
    pub fn of_reader(
        reader: &LedgerReader,
        data_set: &str,
        digest: Option<&str>,
        cap: Option<&PrivateCap>,
    ) -> Result<Vec<Self>, LedgerError> {
        others(reader.connection(), data_set, digest, cap)
    }
}

impl Ledger {
    /// Other data sets of which something left, with what they cost.
    pub fn other_data_sets(
        &self,
        data_set: &str,
        digest: Option<&str>,
        cap: Option<&PrivateCap>,
    ) -> Result<Vec<OtherSpent>, LedgerError> {
        others(&self.opened()?.connection, data_set, digest, cap)
    }
}

impl LedgerReader {
    /// Names of other data sets of which something left.
    pub fn other_names(&self, data_set: &str) -> Result<Vec<String>, LedgerError> {
        let names = names(self.connection(), data_set, None)?;
        Ok(names.into_iter().map(|(name, _)| name).collect())
    }
}

fn others(
    connection: &Connection,
    data_set: &str,
    digest: Option<&str>,
    cap: Option<&PrivateCap>,
) -> Result<Vec<OtherSpent>, LedgerError> {
    let names = names(connection, data_set, digest)?.into_iter();
    names
        .map(|(name, same_rows)| {
            Ok(OtherSpent {
                epsilon: report(connection, &name, cap)?.epsilon_spent,
                published: decimal(account::spent_billionths(connection, &name)?),
                data_set: name,
                renamed_to: data_set.to_owned(),
                same_rows,
            })
        })
        .collect()
}

/// How the terms of a job end, if it was opened with the rows of this digest.
pub(in crate::guard) fn rows_in_terms(digest: &str) -> String {
    format!(", rows {digest}")
}

/// Names of the others, and whether a job on them had the rows of this digest.
fn names(
    connection: &Connection,
    data_set: &str,
    digest: Option<&str>,
) -> Result<Vec<(String, bool)>, LedgerError> {
    // The terms of a job end with the digest of the rows that it was opened with; those of 0.2 are JSON.
    let mut query = connection.prepare(
        "SELECT data_set, EXISTS (
             SELECT 1 FROM jobs j WHERE j.data_set = known.data_set AND
             (substr(j.terms, -length(?3)) = ?3 OR
              CASE WHEN json_valid(j.terms) THEN json_extract(j.terms, '$.rows') END = ?2))
         FROM (SELECT data_set FROM private UNION SELECT data_set FROM releases
               UNION SELECT data_set FROM disclosed) AS known
         WHERE data_set <> ?1 ORDER BY data_set",
    )?;
    let terms_end = digest.map(rows_in_terms);
    let rows = query.query_map(params![data_set, digest, terms_end], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
