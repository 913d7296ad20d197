//! `provider backup`: a copy of what cannot be made again, also while the daemon runs.
//!
//! The ledger in a copy of its files could be torn; SQLite writes a whole one. The copy is as
//! secret as the originals. The ledger's anchor is not copied: it must be newer than any copy, so
//! that a restored ledger from which entries are missing is noticed.

use crate::config::ProviderConfig;
use crate::guard::ledger::{LedgerError, LedgerReader};
use crate::system::files;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Keys and certificates are short.
const FILE_LIMIT: u64 = 1 << 20;

/// Copies ledger, row order and identity into a new folder; returns what is there now.
pub fn backup(config: &ProviderConfig, folder: &Path) -> Result<Vec<PathBuf>, LedgerError> {
    make_private(folder)?;
    make_private(&folder.join("identity"))?;
    let ledger = folder.join("ledger.sqlite");
    LedgerReader::open(&config.ledger_place())?.copy_to(&ledger)?;
    let secrets = [
        (config.store.join("row-order.key"), "row-order.key"),
        (config.identity.join("key.pem"), "identity/key.pem"),
        (
            config.identity.join("certificate.pem"),
            "identity/certificate.pem",
        ),
    ];
    let mut made = vec![ledger];
    for (from, name) in secrets {
        let to = folder.join(name);
        copy(&from, &to).map_err(|cause| LedgerError::BackupFile { path: from, cause })?;
        made.push(to);
    }
    Ok(made)
}

fn make_private(folder: &Path) -> Result<(), LedgerError> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(folder);
    made.map_err(|cause| LedgerError::BackupFolder {
        path: folder.to_owned(),
        cause,
    })
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let content = zeroize::Zeroizing::new(files::read_bounded(from, FILE_LIMIT)?);
    files::create_secret(to, &content)
}
