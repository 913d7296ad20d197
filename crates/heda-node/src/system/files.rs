//! Files that are either whole or not there, and secrets that only their owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Creates a file that only its owner can read. It must not be there yet.
pub(crate) fn create_secret(path: &Path, content: &[u8]) -> io::Result<()> {
    create_with_mode(path, content, 0o600)
}

/// Creates a file that everyone may read. It must not be there yet.
pub(crate) fn create_public(path: &Path, content: &[u8]) -> io::Result<()> {
    create_with_mode(path, content, 0o644)
}

/// Creates a file that only its owner can read and that something else fills, by the name that it
/// is given; what it filled must be on the disk when it returns. It must not be there yet.
pub(crate) fn create_secret_filled(
    path: &Path,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    through_neighbour(path, b"", 0o600, |temporary| {
        fill(temporary)?;
        put_new(temporary, path)
    })
}

/// A file that was not there is whole or still not there, also after a crash.
fn create_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    through_neighbour(path, content, mode, |temporary| put_new(temporary, path))
}

/// A link, unlike a new name, is never put over a file.
fn put_new(temporary: &Path, path: &Path) -> io::Result<()> {
    std::fs::hard_link(temporary, path)?;
    std::fs::remove_file(temporary)
}

/// Replaces a file at once: whoever reads it sees the old content or the new, also after a crash.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    through_neighbour(path, content, mode, |temporary| {
        std::fs::rename(temporary, path)
    })
}

fn through_neighbour(
    path: &Path,
    content: &[u8],
    mode: u32,
    put: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = neighbour(path)?;
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(mode);
    let written = made.open(&temporary).and_then(|mut file| {
        // The mode of a result is what was asked for, whatever the process masks.
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.write_all(content)?;
        file.sync_all()
    });
    written.and_then(|()| put(&temporary)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })?;
    sync_folder(path)
}

/// What is behind the name of a file while it is written.
const PARTIAL: &str = ".partial";

/// Removes what earlier runs that were killed left of these files. Nobody else may be writing
/// them: a lock is held on the folder, or it is known otherwise.
pub fn remove_partial(folder: &Path, names: &[&str]) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let of_ours = |ours: &&str| is_partial_of(name.to_str().unwrap_or_default(), ours);
        if names.iter().any(of_ours) {
            std::fs::remove_file(folder.join(&name))?;
        }
    }
    Ok(())
}

/// Whether a file is what [`neighbour`] calls a part of `whole`, or what SQLite puts beside it.
fn is_partial_of(name: &str, whole: &str) -> bool {
    let beside = ["-wal", "-shm", "-journal"];
    let part = beside.iter().find_map(|suffix| name.strip_suffix(suffix));
    let name = part.unwrap_or(name);
    let middle = name
        .strip_prefix(whole)
        .and_then(|rest| rest.strip_suffix(PARTIAL)?.strip_prefix('.'));
    let numbers = middle.map(|middle| middle.split_once('-').unwrap_or((middle, "0")));
    numbers.is_some_and(|(process, number)| {
        process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok()
    })
}

/// A folder that one process uses at a time; free again when this is dropped, or the process dies.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held, not read")] File);

impl FolderLock {
    /// Takes a folder, or says that another process has it.
    ///
    /// # Errors
    /// If the folder cannot be opened, or another process holds it (`WouldBlock`).
    pub fn take(folder: &Path) -> io::Result<Self> {
        let handle = File::open(folder)?;
        handle.try_lock().map_err(io::Error::from)?;
        Ok(Self(handle))
    }
}

/// A name beside a file that nobody else writes: neither another process nor a thread of ours.
fn neighbour(path: &Path) -> io::Result<PathBuf> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut name = name.to_os_string();
    let (process, number) = (std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed));
    name.push(format!(".{process}-{number}{PARTIAL}"));
    let temporary = path.with_file_name(name);
    // A crashed process with our number may have left one.
    match std::fs::remove_file(&temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(temporary),
    }
}

/// Makes the folder that a file is to lie in, for its owner only.
pub(crate) fn create_private_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    match folder {
        Some(folder) => create_private_folder(folder),
        None => Ok(()),
    }
}

/// Makes a folder for its owner only; one that is there stays as it is.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// A new name survives a power cut only when its folder is written too.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Reads a file of at most `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?
        .take(limit + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        let text = format!("longer than the {limit} bytes that such a file may have");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(content)
}

/// Whether a file can be read by its owner only.
pub(crate) fn is_private(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_is_whole_and_private_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        replace(&path, b"one", 0o600).unwrap();
        replace(&path, b"two", 0o600).unwrap();
        assert_eq!(read_bounded(&path, 3).unwrap(), b"two");
        assert!(is_private(&path).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(read_bounded(&path, 2).is_err());
    }

    #[test]
    fn only_parts_of_our_own_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = [
            "model.json",
            "model.json-wal",
            "model.json.partial",
            "model.json.x.partial",
            "model.json.7-x.partial",
            "model.json.7.partial.txt",
            "other.json.7.partial",
        ];
        for name in kept
            .iter()
            .chain(&["model.json.7.partial", "key.1-2.partial-wal"])
        {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        remove_partial(folder.path(), &["model.json", "key"]).unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
        left.sort();
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        assert_eq!(left, kept);
    }

    #[test]
    fn a_folder_has_one_user_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        let second = FolderLock::take(folder.path());
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        FolderLock::take(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn creating_never_overwrites() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        create_public(&path, b"one").unwrap();
        assert!(!is_private(&path).unwrap());
        assert!(create_secret(&path, b"two").is_err());
        assert_eq!(read_bounded(&path, 9).unwrap(), b"one");
    }
}
