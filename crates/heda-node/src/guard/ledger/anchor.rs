//! The ledger's anchor: how far the ledger had come, kept outside the store.
//!
//! A store that is deleted, emptied or put back from an old copy looks like a young ledger, and a
//! young ledger would pay every budget again. The anchor lies with the identity and names the
//! ledger (its epoch) and its last entry. It is written after every change and before anything of
//! that change leaves, so a ledger behind its anchor has lost something.
//!
//! Two lines of one length are written in turn: a torn write leaves the other one.

use super::LedgerError;
use super::chain::{ChainHead, Epoch};
use crate::system::files;
use crate::system::hex;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How far a ledger had come, as its anchor knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchored {
    pub(super) epoch: Epoch,
    pub(super) head: ChainHead,
}

/// The file.
#[derive(Debug, Clone)]
pub(super) struct Anchor(PathBuf);

/// Name, epoch, number, hash, check digits, and what is between and behind them.
const LINE: usize = 6 + 1 + 32 + 1 + 20 + 1 + 64 + 1 + 16 + 1;

impl Anchor {
    pub(super) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// What the anchor says; nothing if there is none.
    pub(super) fn read(&self) -> Result<Option<Anchored>, LedgerError> {
        match File::open(&self.0).and_then(|file| newest(&file)) {
            Ok(newest) => Ok(Some(newest)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(self.error(cause)),
        }
    }

    /// Makes the file, unless another process was faster.
    pub(super) fn begin(&self, anchored: &Anchored) -> Result<(), LedgerError> {
        let made = files::create_private_folder_of(&self.0)
            .and_then(|()| files::create_secret(&self.0, &lines(anchored)));
        match made {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(|cause| self.error(cause)),
        }
    }

    /// Makes the file anew, whatever was there before.
    pub(super) fn replace(&self, anchored: &Anchored) -> Result<(), LedgerError> {
        let made = files::create_private_folder_of(&self.0)
            .and_then(|()| files::replace(&self.0, &lines(anchored), 0o600));
        made.map_err(|cause| self.error(cause))
    }

    /// Moves the anchor forward. Several processes may write one ledger: what is newer stays.
    pub(super) fn advance(&self, anchored: &Anchored) -> Result<(), LedgerError> {
        let mut options = File::options();
        let advanced = options.read(true).write(true).open(&self.0);
        let advanced = advanced.and_then(|mut file| {
            file.lock()?;
            if newest(&file)?.head.number >= anchored.head.number {
                return Ok(());
            }
            let slot = anchored.head.number % 2 * LINE as u64;
            file.seek(SeekFrom::Start(slot))?;
            file.write_all(line(anchored).as_bytes())?;
            file.sync_data()
        });
        advanced.map_err(|cause| self.error(cause))
    }

    fn error(&self, cause: io::Error) -> LedgerError {
        LedgerError::Anchor {
            path: self.0.clone(),
            cause,
        }
    }
}

fn lines(anchored: &Anchored) -> Vec<u8> {
    line(anchored).repeat(2).into_bytes()
}

fn line(anchored: &Anchored) -> String {
    let Anchored { epoch, head } = anchored;
    let text = format!("anchor {epoch} {:020} {}", head.number, hex(&head.hash));
    let check = hex(&Sha256::digest(&text)[..8]);
    format!("{text} {check}\n")
}

/// The later one of the whole lines of a file that was just opened.
fn newest(file: &File) -> io::Result<Anchored> {
    let mut text = Vec::new();
    file.take(4 * LINE as u64).read_to_end(&mut text)?;
    let lines = text.chunks(LINE).filter_map(parse);
    lines
        .max_by_key(|line| line.head.number)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it holds no whole line of ours"))
}

fn parse(text: &[u8]) -> Option<Anchored> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let mut words = text.split(' ').skip(1);
    let anchored = Anchored {
        epoch: words.next()?.parse().ok()?,
        head: ChainHead {
            number: words.next()?.parse().ok()?,
            hash: crate::system::unhex(words.next()?)?,
        },
    };
    (line(&anchored).strip_suffix('\n') == Some(text)).then_some(anchored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchored(number: u64) -> Anchored {
        Anchored {
            epoch: Epoch([9; 16]),
            head: ChainHead {
                number,
                hash: [number as u8; 32],
            },
        }
    }

    #[test]
    fn an_anchor_only_moves_forward_and_survives_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity/ledger.anchor");
        let anchor = Anchor::at(&path);
        assert_eq!(anchor.read().unwrap(), None);
        assert!(anchor.advance(&anchored(1)).is_err(), "nothing to advance");
        anchor.begin(&anchored(1)).unwrap();
        for number in 2..=5 {
            anchor.advance(&anchored(number)).unwrap();
        }
        anchor.advance(&anchored(3)).unwrap();
        assert_eq!(anchor.read().unwrap(), Some(anchored(5)));
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), 2 * LINE);
        // Any byte of the newest line torn: the line before it is left.
        for byte in LINE..2 * LINE {
            let mut torn = whole.clone();
            torn[byte] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(anchor.read().unwrap(), Some(anchored(4)), "byte {byte}");
        }
        for other in [&b""[..], b"anchor\n", &[0; 2 * LINE]] {
            std::fs::write(&path, other).unwrap();
            assert!(anchor.read().is_err());
        }
        assert!(files::is_private(&path).unwrap());
    }

    #[test]
    fn what_is_as_new_stays_and_so_does_an_anchor_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let anchor = Anchor::at(&folder.path().join("ledger.anchor"));
        anchor.begin(&anchored(2)).unwrap();
        let other = Anchored {
            epoch: Epoch([9; 16]),
            ..anchored(2)
        };
        anchor.begin(&other).unwrap();
        anchor.advance(&other).unwrap();
        assert_eq!(anchor.read().unwrap(), Some(anchored(2)));
        anchor.replace(&other).unwrap();
        assert_eq!(anchor.read().unwrap(), Some(other));
    }

    #[test]
    fn an_anchor_that_cannot_be_made_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"no folder").unwrap();
        let path = file.join("identity/ledger.anchor");
        let begun = Anchor::at(&path).begin(&anchored(1)).unwrap_err();
        assert!(matches!(begun, LedgerError::Anchor { path: named, .. } if named == path));
    }

    /// Who looked before another process wrote must not write over what is newer.
    #[test]
    fn processes_move_an_anchor_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.anchor");
        let anchor = Anchor::at(&path);
        anchor.begin(&anchored(1)).unwrap();
        let holder = File::open(&path).unwrap();
        holder.lock().unwrap();
        std::thread::scope(|scope| {
            let slower = scope.spawn(|| anchor.advance(&anchored(3)));
            // Long enough for it to look, if it would not wait.
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(!slower.is_finished(), "it waits for the lock");
            let newer = line(&anchored(5)).repeat(2);
            std::fs::write(&path, newer).unwrap();
            holder.unlock().unwrap();
            slower.join().unwrap().unwrap();
        });
        assert_eq!(anchor.read().unwrap(), Some(anchored(5)));
    }
}
