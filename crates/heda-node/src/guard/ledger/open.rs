//! Opening the ledger, and looking whether it is still the same.

use super::anchor::{Anchor, Anchored};
use super::chain::{self, ChainHead, ENTRIES_KEPT, Epoch};
use super::missing::{self, Caps};
use super::reserve::Reservations;
use super::{Change, Clock, Ledger, LedgerError, LedgerLoss, RECORDS_KEPT, advance_clock, schema};
use crate::system::clock::Timestamp;
use crate::system::{files, hex};
use heda_crypto::random::{NoRandomness, Randomness};
use heda_job::guard::LedgerHead;
use rand_core::Rng;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long to wait for another process that writes. Tests put files of other modes under an open
/// ledger, which looks like a lock: they wait less.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 30 });

/// Where a ledger and its anchor are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPlace {
    /// The file in the store.
    pub ledger: PathBuf,
    /// The anchor, outside the store.
    pub anchor: PathBuf,
}

impl LedgerPlace {
    pub(super) fn anchor(&self) -> Anchor {
        Anchor::at(&self.anchor)
    }
}

/// A ledger that was found whole, and by what it is known again.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) connection: Connection,
    epoch: Epoch,
    head: ChainHead,
    /// The file as we left it; none if it has to be looked at again in any case.
    mark: Option<Mark>,
}

/// What changes when somebody else writes, replaces or removes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    file: u64,
    length: u64,
    changed: (i64, i64),
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            file: found.ino(),
            length: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
        })
    }

    /// The mark after we wrote; none if it is not even the same file any more.
    fn after(path: &Path, before: Option<Self>) -> Option<Self> {
        let same =
            |after: &Self| before.is_some_and(|b| (b.device, b.file) == (after.device, after.file));
        Self::of(path).filter(same)
    }
}

impl Ledger {
    /// Opens the ledger and makes sure that it is the one that its anchor knows. Where there is
    /// neither a ledger nor an anchor, both are made; an older ledger is brought to the current
    /// version.
    pub fn open(place: &LedgerPlace, clock: Arc<dyn Clock>) -> Result<Self, LedgerError> {
        let opened = Opened::new(place, clock.now())?;
        Ok(Self {
            place: place.clone(),
            opened: Mutex::new(opened),
            clock,
            reserved: Reservations::default(),
            records: RECORDS_KEPT,
        })
    }

    /// Begins a new chain and a new anchor, by an operator's wish: over what is there if it can be
    /// read, otherwise over nothing; what cannot be read is moved aside. Entries that the anchor knows
    /// and the ledger does not have are charged for the most that they can have cost.
    pub fn begin_anew(
        place: &LedgerPlace,
        because: &str,
        caps: &Caps<'_>,
        clock: Arc<dyn Clock>,
    ) -> Result<Begun, LedgerError> {
        // An anchor that cannot be read knows nothing.
        let anchored = place.anchor().read().ok().flatten();
        let mut aside = None;
        let mut found = None;
        if place.ledger.exists() {
            match connect(&place.ledger) {
                Ok(connection) => found = Some(connection),
                Err(LedgerError::Lost(_) | LedgerError::Damaged(_)) => {
                    aside = Some(move_aside(&place.ledger, clock.now())?);
                }
                Err(error) => return Err(error),
            }
        }
        let missing = missing::count(found.as_ref(), anchored.as_ref())?;
        drop(found);
        create(&place.ledger)?;
        let mut connection = connect(&place.ledger)?;
        let charged = (missing > 0).then_some(caps);
        if let Some(anchored) = begin(&mut connection, because, charged, clock.now())? {
            place.anchor().replace(&anchored)?;
        }
        drop(connection);
        Ok(Begun {
            ledger: Self::open(place, clock)?,
            aside,
            missing,
        })
    }
}

/// A ledger that begins anew.
#[derive(Debug)]
pub struct Begun {
    /// The ledger.
    pub ledger: Ledger,
    /// Where that went which could not be read.
    pub aside: Option<PathBuf>,
    /// Entries that the anchor knew and that are gone; for them all that was left is charged.
    pub missing: u64,
}

impl Opened {
    fn new(place: &LedgerPlace, now: Timestamp) -> Result<Self, LedgerError> {
        // The anchor first: whoever writes meanwhile only makes the ledger longer.
        let anchored = place.anchor().read()?;
        match (&anchored, place.ledger.exists()) {
            (Some(_), false) => {
                return Err(LedgerError::Lost(LedgerLoss::Gone(place.ledger.clone())));
            }
            (None, false) => create(&place.ledger)?,
            (_, true) => {}
        }
        let mark = Mark::of(&place.ledger);
        let connection = open_file(&place.ledger)?;
        if anchored.is_some() {
            check_upgrade(&connection)?;
        }
        let mut connection = prepared(connection)?;
        if anchored.is_none() && chain::epoch(&connection)?.is_none() {
            begin(&mut connection, "the first start", None, now)?;
        }
        let (epoch, head) = check_history(&connection, anchored.as_ref(), place)?;
        if anchored.is_none() {
            // Another process may have been faster; its anchor stays.
            place.anchor().begin(&Anchored { epoch, head })?;
        }
        Ok(Self {
            connection,
            epoch,
            head,
            mark: Mark::after(&place.ledger, mark),
        })
    }

    /// Looks whether the file is the one that we know; one that changed is opened anew, and
    /// followed from its beginning.
    pub(super) fn look(&mut self, place: &LedgerPlace) -> Result<(), LedgerError> {
        let found = Mark::of(&place.ledger);
        if found.is_some() && found == self.mark {
            return Ok(());
        }
        let again = Self::new(place, Timestamp(0))?;
        if again.epoch != self.epoch {
            return Err(LedgerError::Lost(LedgerLoss::OtherEpoch));
        }
        follows(&again.connection, again.head, self.head)?;
        *self = again;
        Ok(())
    }

    /// For data users.
    pub(super) fn head(&self) -> LedgerHead {
        LedgerHead {
            epoch: self.epoch.to_string(),
            entry: self.head.number,
            hash: hex(&self.head.hash),
        }
    }

    /// The next use opens the file anew.
    pub(super) fn distrust(&mut self) {
        self.mark = None;
    }

    /// Runs a change on the tables and the chain, and moves the anchor before it returns.
    pub(super) fn change<T>(
        &mut self,
        place: &LedgerPlace,
        now: Timestamp,
        work: impl FnOnce(&Change<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let behaviour = TransactionBehavior::Immediate;
        let tables = self.connection.transaction_with_behavior(behaviour)?;
        let now = advance_clock(&tables, now)?;
        let before = chain::head(&tables)?.ok_or(LedgerError::Lost(LedgerLoss::NoChain))?;
        follows(&tables, before, self.head)?;
        let change = Change { tables, now };
        let result = work(&change)?;
        chain::shorten(&change, ENTRIES_KEPT, now)?;
        let head = chain::head(&change)?.ok_or(LedgerError::Lost(LedgerLoss::NoChain))?;
        change.tables.commit()?;
        self.mark = Mark::after(&place.ledger, self.mark);
        self.head = head;
        let epoch = self.epoch;
        place.anchor().advance(&Anchored { epoch, head })?;
        Ok(result)
    }
}

/// Whether a chain that ends with `head` goes on from an entry that we know.
fn follows(connection: &Connection, head: ChainHead, known: ChainHead) -> Result<(), LedgerError> {
    if head.number < known.number {
        let (found, known) = (head.number, known.number);
        return Err(LedgerError::Lost(LedgerLoss::Shorter { found, known }));
    }
    match chain::entry_at(connection, known.number)? {
        Some(entry) if entry != known => {
            Err(LedgerError::Lost(LedgerLoss::OtherEntry(known.number)))
        }
        // An entry that was carried forward is bound by the hashes after it.
        _ => Ok(()),
    }
}

/// Follows the whole chain, and finds in it what the anchor knew before.
pub(super) fn check_history(
    connection: &Connection,
    anchored: Option<&Anchored>,
    place: &LedgerPlace,
) -> Result<(Epoch, ChainHead), LedgerError> {
    // All of it as of one moment: others may write meanwhile.
    let moment = connection.unchecked_transaction()?;
    let epoch = chain::epoch(&moment)?.ok_or(LedgerError::Lost(LedgerLoss::NoChain))?;
    if anchored.is_some_and(|anchored| anchored.epoch != epoch) {
        return Err(LedgerError::Lost(LedgerLoss::OtherEpoch));
    }
    let head = chain::verify(&moment)?;
    match anchored {
        Some(anchored) => follows(&moment, head, anchored.head)?,
        // A crash between the first entry and the anchor: nothing has left yet.
        None if head.number == 1 => {}
        None => {
            drop(moment);
            // Another process may have made the anchor and gone on since we looked for it.
            let anchored = place.anchor().read()?;
            let no_anchor = || LedgerError::Lost(LedgerLoss::NoAnchor(place.anchor.clone()));
            return check_history(connection, Some(&anchored.ok_or_else(no_anchor)?), place);
        }
    }
    Ok((epoch, head))
}

/// That SQLite finds the file whole.
pub(super) fn check_file(connection: &Connection) -> Result<(), LedgerError> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match found.as_str() {
        "ok" => Ok(()),
        _ => Err(LedgerError::Lost(LedgerLoss::Damaged(found))),
    }
}

/// A ledger that has an anchor has had a chain, and keeps it in every later version: one without is not
/// brought up to date.
fn check_upgrade(connection: &Connection) -> Result<(), LedgerError> {
    match schema::version(connection)? < schema::CHAIN_VERSION {
        true => Err(LedgerError::Lost(LedgerLoss::NoChain)),
        false => Ok(()),
    }
}

/// Made by us first, so that nobody else can ever read it; SQLite gives the files beside it the
/// same permissions. It gets its name when its tables are there: processes that turn one file to
/// write-ahead mode at once would lock each other out.
fn create(path: &Path) -> Result<(), LedgerError> {
    let made = files::create_secret_filled(path, |new| {
        let connection = connect(new).map_err(io::Error::other)?;
        // What is in the log goes into the file, and the log away.
        connection.close().map_err(|(_, e)| io::Error::other(e))
    });
    match made {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(file_error(path, e)),
        _ => Ok(()),
    }
}

fn connect(path: &Path) -> Result<Connection, LedgerError> {
    prepared(open_file(path)?)
}

fn open_file(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_PATIENCE)?;
    check_file(&connection)?;
    Ok(connection)
}

fn prepared(mut connection: Connection) -> Result<Connection, LedgerError> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Pages that are kept in memory, in kilobytes: few are enough, and they are never given back.
    connection.pragma_update(None, "cache_size", -512)?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// A new chain over what the tables hold, and over what missing entries are charged for. Two processes
/// may open a new ledger at once: one begins.
fn begin(
    connection: &mut Connection,
    because: &str,
    charged: Option<&Caps<'_>>,
    now: Timestamp,
) -> Result<Option<Anchored>, LedgerError> {
    let known = chain::epoch(connection)?;
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if chain::epoch(&change)? != known {
        return Ok(None);
    }
    let now = advance_clock(&change, now)?;
    let epoch = draw_epoch().map_err(|e| LedgerError::Damaged(e.to_string()))?;
    if let Some(caps) = charged {
        missing::charge(&change, caps, now)?;
    }
    let head = chain::begin(&change, epoch, because, now)?;
    change.commit()?;
    Ok(Some(Anchored { epoch, head }))
}

fn draw_epoch() -> Result<Epoch, NoRandomness> {
    let mut epoch = [0; 16];
    let mut rng = Randomness::from_os().fork("ledger epoch", 0)?;
    rng.fill_bytes(&mut epoch);
    Ok(Epoch(epoch))
}

/// Nothing that a ledger may be is ever deleted; its write-ahead log goes with it.
fn move_aside(path: &Path, now: Timestamp) -> Result<PathBuf, LedgerError> {
    let beside = |suffix: &str, add: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.push(add);
        PathBuf::from(name)
    };
    let add = format!(".replaced-{}", now.0);
    for suffix in ["-wal", "-shm", ""] {
        let from = beside(suffix, "");
        if from.exists() {
            let to = beside(suffix, &add);
            std::fs::rename(&from, to).map_err(|e| file_error(path, e))?;
        }
    }
    Ok(beside("", &add))
}

pub(super) fn file_error(path: &Path, cause: io::Error) -> LedgerError {
    LedgerError::File {
        path: path.to_owned(),
        cause,
    }
}
