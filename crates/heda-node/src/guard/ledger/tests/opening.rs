//! What opening a ledger looks at, and what a ledger that is open knows of its files.

use super::*;
use crate::guard::ledger::anchor::Anchored;
use crate::guard::ledger::chain::{ChainHead, Epoch};
use crate::guard::ledger::open::LOCK_PATIENCE;
use crate::system::hex;
use sha2::{Digest, Sha256};

fn number(connection: &Connection, pragma: &str) -> u64 {
    let value = connection.pragma_query_value(None, pragma, |row| row.get(0));
    value.unwrap()
}

/// Hashes as the documentation of the chain says.
fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    Sha256::digest(parts.concat()).into()
}

/// Writes a ledger of an older version. From the version on that has a chain it has one entry; before, its anchor
/// knows one all the same.
fn written_as(version: u32, place: &LedgerPlace) {
    let connection = Connection::open(&place.ledger).unwrap();
    for step in &schema::MIGRATIONS[..version as usize] {
        connection.execute_batch(step).unwrap();
    }
    let set = connection.pragma_update(None, "user_version", version);
    set.unwrap();
    let (epoch, at) = (Epoch([5; 16]), 7u64);
    let what = r#"{"kind":"begun","because":"a test","carried":{"spent":{},"counted":{}}}"#;
    let before = sha256(&[b"heda ledger", &epoch.0]);
    let [first, time] = [1u64, at].map(u64::to_be_bytes);
    let hash = sha256(&[&before, &first, &time, what.as_bytes()]);
    if version >= schema::CHAIN_VERSION {
        let chain = params![epoch.to_string(), before];
        let chained = connection.execute("INSERT INTO chain VALUES (0, ?1, ?2)", chain);
        chained.unwrap();
        let entry = params![at, what, hash];
        let noted = connection.execute("INSERT INTO entries VALUES (1, ?1, ?2, ?3)", entry);
        noted.unwrap();
    }
    let head = ChainHead { number: 1, hash };
    place.anchor().begin(&Anchored { epoch, head }).unwrap();
}

/// Whoever has an anchor has had a chain: a file without one is not made into a ledger that looks young.
#[test]
fn a_file_from_before_the_chain_is_refused_and_stays_as_it_is_where_there_is_an_anchor() {
    for version in 1..=LEDGER_VERSION {
        let bench = Bench::new();
        written_as(version, &bench.place());
        let opened = bench.open();
        let chained = version >= schema::CHAIN_VERSION;
        assert_eq!(opened.is_ok(), chained, "{version}: {opened:?}");
        if let Err(error) = opened {
            assert!(matches!(error, LedgerError::Lost(LedgerLoss::NoChain)));
        }
        let file = Connection::open(bench.path()).unwrap();
        let expected = if chained { LEDGER_VERSION } else { version };
        assert_eq!(schema::version(&file).unwrap(), expected);
    }
}

#[test]
fn a_reader_tells_a_lost_chain_from_an_older_version() {
    for version in 0..LEDGER_VERSION {
        for with_anchor in [true, false] {
            let bench = Bench::new();
            bench.ledger();
            let file = Connection::open(bench.path()).unwrap();
            file.pragma_update(None, "user_version", version).unwrap();
            if !with_anchor {
                std::fs::remove_file(bench.place().anchor).unwrap();
            }
            let error = LedgerReader::open(&bench.place()).unwrap_err();
            match with_anchor && version < schema::CHAIN_VERSION {
                true => assert!(
                    matches!(error, LedgerError::Lost(LedgerLoss::NoChain)),
                    "{error}"
                ),
                false => assert!(
                    matches!(error, LedgerError::FromThePast { found, .. } if found == version),
                    "{error}"
                ),
            }
        }
    }
}

#[test]
fn connections_wait_for_others_that_write_and_keep_to_foreign_keys() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let reader = LedgerReader::open(&bench.place()).unwrap();
    let patience = LOCK_PATIENCE.as_millis() as u64;
    let opened = ledger.opened().unwrap();
    for connection in [&opened.connection, reader.connection()] {
        assert_eq!(number(connection, "busy_timeout"), patience);
        assert_eq!(number(connection, "foreign_keys"), 1);
    }
}

/// No budget and no entry is on the page: only SQLite's own check finds that it is damaged.
#[test]
fn a_damaged_page_is_found_whatever_is_on_it() {
    let bench = Bench::new();
    bench.ledger().refuse(&key("a"), "user", "no").unwrap();
    let file = Connection::open(bench.path()).unwrap();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'refusals'";
    let page: usize = file.query_row(root, [], |row| row.get(0)).unwrap();
    let size = number(&file, "page_size") as usize;
    drop(file);
    let mut bytes = std::fs::read(bench.path()).unwrap();
    bytes[(page - 1) * size..page * size].fill(0x5a);
    std::fs::write(bench.path(), bytes).unwrap();
    let opened = bench.open().map(drop);
    let read = LedgerReader::open(&bench.place()).map(drop);
    for found in [opened, read] {
        assert!(
            matches!(found, Err(LedgerError::Lost(LedgerLoss::Damaged(_)))),
            "{found:?}"
        );
    }
}

#[test]
fn every_ledger_is_another_one_and_begins_with_the_hash_of_its_epoch() {
    let heads = [Bench::new(), Bench::new()].map(|bench| {
        let ledger = bench.ledger();
        let opened = ledger.opened().unwrap();
        let chain = "SELECT epoch, before FROM chain";
        let chain = opened
            .connection
            .query_row(chain, [], |row| Ok((row.get(0)?, row.get(1)?)));
        let (epoch, before): (String, [u8; 32]) = chain.unwrap();
        let bytes = epoch.parse::<Epoch>().unwrap().0;
        assert_eq!(before, sha256(&[b"heda ledger", &bytes]));
        assert_eq!(opened.head().epoch, epoch);
        epoch
    });
    assert_ne!(heads[0], heads[1]);
    assert!(!heads.contains(&hex(&[0; 16])));
}

#[test]
fn the_head_that_data_users_keep_is_that_of_the_last_change() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let before = ledger.head().unwrap();
    ledger.open_job(&key("a"), &terms("same")).unwrap();
    let after = ledger.head().unwrap();
    assert_eq!((before.entry, after.entry), (1, 2));
    assert_ne!(before.hash, after.hash);
    let anchored = bench.place().anchor().read().unwrap().unwrap();
    assert_eq!(after.hash, hex(&anchored.head.hash));
}

#[test]
fn a_ledger_without_a_folder_cannot_be_made() {
    let bench = Bench::new();
    let place = place(&bench.folder.path().join("missing/ledger.sqlite"));
    let opened = Ledger::open(&place, Arc::clone(&bench.clock) as _);
    assert!(
        matches!(&opened, Err(LedgerError::File { path, .. }) if *path == place.ledger),
        "{opened:?}"
    );
}

/// What we wrote ourselves is no reason to read the whole chain again.
#[test]
fn a_file_that_only_we_changed_is_not_opened_anew() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let pages =
        |ledger: &Ledger| number(&ledger.opened().unwrap().connection, "wal_autocheckpoint");
    // Every change goes from the log into the file at once.
    let opened = ledger.opened().unwrap();
    let set = opened
        .connection
        .pragma_update_and_check(None, "wal_autocheckpoint", 1, |_| Ok(()));
    set.unwrap();
    drop(opened);
    let length = || std::fs::metadata(bench.path()).unwrap().len();
    let before = length();
    let paid = ledger.buy(&key("a"), "ward", charge("0.1", 1), epsilon("1"));
    assert!(matches!(paid, Ok(Purchase::Paid(_))));
    let stored = ledger.store_release(&key("a"), &[7; 1 << 16]);
    stored.unwrap();
    assert!(length() >= before + (1 << 16));
    assert_eq!(pages(&ledger), 1, "this is the connection from before");
}

#[test]
fn trying_to_write_reaches_the_disk_and_says_when_it_cannot() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let log = || std::fs::read(bench.path().with_extension("sqlite-wal")).unwrap();
    let (before, head) = (log(), ledger.head().unwrap());
    ledger.try_writing().unwrap();
    assert!(log() != before, "the log is as it was");
    assert_eq!(ledger.head().unwrap(), head, "nothing has changed");
    let opened = ledger.opened().unwrap();
    let stopped = opened.connection.pragma_update(None, "query_only", true);
    stopped.unwrap();
    drop(opened);
    let tried = ledger.try_writing();
    assert!(matches!(tried, Err(LedgerError::ReadOnly)), "{tried:?}");
}
