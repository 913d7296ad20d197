//! The tables, and how an older file becomes a current one.

use super::LedgerError;
use rusqlite::{Connection, TransactionBehavior};

/// Step i brings a file from version i to version i + 1. Steps are only ever added.
pub(super) const MIGRATIONS: [&str; 7] = [
    "
CREATE TABLE clock (
    id   INTEGER PRIMARY KEY CHECK (id = 0),
    seen INTEGER NOT NULL                    -- the latest time ever seen, Unix seconds
) STRICT;
INSERT INTO clock VALUES (0, 0);
CREATE TABLE jobs (
    peer       TEXT NOT NULL,                -- fingerprint of the data user
    id         TEXT NOT NULL,                -- chosen by the data user
    label      TEXT NOT NULL,                -- what the configuration calls the data user
    data_set   TEXT NOT NULL,
    engine     TEXT NOT NULL,
    terms      TEXT NOT NULL,                -- the agreed request; a job cannot change it
    opened     INTEGER NOT NULL,
    ended      INTEGER,
    state      TEXT NOT NULL CHECK (state IN ('open', 'finished', 'failed')),
    iterations INTEGER NOT NULL DEFAULT 0 CHECK (iterations >= 0),
    PRIMARY KEY (peer, id)
) STRICT;
CREATE TABLE releases (
    peer       TEXT NOT NULL,
    job        TEXT NOT NULL,
    data_set   TEXT NOT NULL,
    charge     TEXT NOT NULL,                -- mechanism and epsilon by column, JSON
    billionths INTEGER NOT NULL CHECK (billionths > 0),
    paid       INTEGER NOT NULL,
    sha256     BLOB,                         -- of content; both are null until it is stored
    content    BLOB,
    PRIMARY KEY (peer, job),
    FOREIGN KEY (peer, job) REFERENCES jobs (peer, id)
) STRICT;
CREATE INDEX releases_by_data_set ON releases (data_set);
CREATE TABLE refusals (
    number INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    peer   TEXT NOT NULL,
    label  TEXT NOT NULL,
    job    TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE TABLE days (
    day        INTEGER NOT NULL,
    data_set   TEXT NOT NULL,
    iterations INTEGER NOT NULL CHECK (iterations >= 0),
    PRIMARY KEY (day, data_set)
) STRICT;
",
    "
ALTER TABLE jobs ADD COLUMN evaluations INTEGER NOT NULL DEFAULT 0 CHECK (evaluations >= 0);
CREATE INDEX jobs_by_id ON jobs (id);
",
    "
ALTER TABLE jobs ADD COLUMN rankings INTEGER NOT NULL DEFAULT 0 CHECK (rankings >= 0);
CREATE TABLE chain (
    id     INTEGER PRIMARY KEY CHECK (id = 0),
    epoch  TEXT NOT NULL,                    -- which ledger this is
    before BLOB NOT NULL                     -- the hash before the first entry
) STRICT;
CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    what   TEXT NOT NULL,                    -- JSON
    hash   BLOB NOT NULL                     -- of this entry and all before it
) STRICT;
",
    "
CREATE TABLE circles (
    peer     TEXT NOT NULL,                  -- fingerprint of the data user
    job      TEXT NOT NULL,
    data_set TEXT NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('scores', 'release', 'training')),
    circle   TEXT NOT NULL,                  -- fingerprints of all providers, in order
    PRIMARY KEY (peer, job, kind)
) STRICT;
CREATE INDEX circles_by_peer ON circles (peer, data_set, kind);
CREATE TABLE disclosed (
    peer     TEXT NOT NULL,
    data_set TEXT NOT NULL,
    numbers  INTEGER NOT NULL CHECK (numbers >= 0),
    PRIMARY KEY (peer, data_set)
) STRICT;
",
    "
CREATE TABLE private (
    peer     TEXT NOT NULL,                  -- fingerprint of the data user
    job      TEXT NOT NULL,
    data_set TEXT NOT NULL,
    training INTEGER NOT NULL CHECK (training >= 0), -- paid for gradients, in 10^-15 of mu squared
    counts   INTEGER NOT NULL CHECK (counts >= 0),   -- paid for counts of held-out rows
    PRIMARY KEY (peer, job)
) STRICT;
CREATE INDEX private_by_data_set ON private (data_set, peer);
",
    "
ALTER TABLE jobs ADD COLUMN next_step INTEGER NOT NULL DEFAULT 0 CHECK (next_step >= 0);
ALTER TABLE jobs ADD COLUMN tries INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0);
ALTER TABLE jobs ADD COLUMN planned INTEGER;  -- what a private job may cost, fixed with its first answer
ALTER TABLE jobs ADD COLUMN persons INTEGER;  -- whether its plan buys the number of persons
CREATE TABLE holds (
    peer     TEXT NOT NULL,                  -- fingerprint of the data user
    job      TEXT NOT NULL,
    data_set TEXT NOT NULL,
    parts    INTEGER NOT NULL CHECK (parts >= 0), -- set aside and not paid, in 10^-15 of mu squared
    used     INTEGER NOT NULL,               -- when it was last paid from, Unix seconds
    PRIMARY KEY (peer, job)
) STRICT;
CREATE INDEX holds_by_data_set ON holds (data_set, peer);
CREATE TABLE failed_checks (
    peer   TEXT PRIMARY KEY,                 -- fingerprint of the data user
    checks INTEGER NOT NULL CHECK (checks >= 0),
    last   INTEGER NOT NULL                  -- Unix seconds
) STRICT;
",
    "
-- Whether sums of columns may have left with the scores: until now both were written down alike.
ALTER TABLE circles ADD COLUMN columns INTEGER NOT NULL DEFAULT 1;
",
];

/// The version that this program writes.
pub const LEDGER_VERSION: u32 = MIGRATIONS.len() as u32;

/// Since this version a ledger has a chain of entries and an anchor.
pub(super) const CHAIN_VERSION: u32 = 3;

/// Brings the file to the current version, one step a transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), LedgerError> {
    loop {
        // Two processes may open a new ledger at once: the version is read under the lock.
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = version(&step)?;
        let Some(sql) = MIGRATIONS.get(version as usize) else {
            return Ok(());
        };
        step.execute_batch(sql)?;
        step.pragma_update(None, "user_version", version + 1)?;
        step.commit()?;
    }
}

/// The version of the file; one from a later program is refused.
pub(super) fn version(connection: &Connection) -> Result<u32, LedgerError> {
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > LEDGER_VERSION {
        return Err(LedgerError::FromTheFuture {
            found: version,
            known: LEDGER_VERSION,
        });
    }
    Ok(version)
}
