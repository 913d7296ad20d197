//! Files that are whole or not there.

use crate::error::Error;
use heda_node::system::files;
use std::path::Path;

/// Results are for who asked for them.
pub const PRIVATE: u32 = 0o600;

/// Writes a file that must not be there yet.
pub fn write_new(path: &Path, content: &[u8]) -> Result<(), Error> {
    if path.exists() {
        return Err(Error::input(format!(
            "{} is there already and is not overwritten",
            path.display()
        )));
    }
    write_whole(path, content)
}

/// Writes a file for its owner so that it is either whole or not there, also after a power cut.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), Error> {
    write_with_mode(path, content, PRIVATE)
}

/// The same with these permissions.
pub(crate) fn write_with_mode(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let fail = |e: std::io::Error| Error::input(format!("cannot write {}: {e}", path.display()));
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    files::replace(path, content, mode).map_err(fail)
}
