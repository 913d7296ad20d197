//! Files that are either whole or not there, and secrets that only their owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Creates a file that only its owner can read. It must not be there yet.
pub(crate) fn create_secret(path: &Path, content: &[u8]) -> io::Result<()> {
    create_with_mode(path, content, 0o600)
}

/// Creates a file that everyone may read. It must not be there yet.
pub(crate) fn create_public(path: &Path, content: &[u8]) -> io::Result<()> {
    create_with_mode(path, content, 0o644)
}

fn create_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })?;
    sync_folder(path)
}

/// Replaces a file at once: whoever reads it sees the old content or the new, also after a crash.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = neighbour(path)?;
    create_with_mode(&temporary, content, mode)
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })?;
    sync_folder(path)
}

fn neighbour(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut name = name.to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    let temporary = path.with_file_name(name);
    // A crashed process with our number may have left one.
    match std::fs::remove_file(&temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(temporary),
    }
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
    fn creating_never_overwrites() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        create_public(&path, b"one").unwrap();
        assert!(!is_private(&path).unwrap());
        assert!(create_secret(&path, b"two").is_err());
        assert_eq!(read_bounded(&path, 9).unwrap(), b"one");
    }
}
