//! Files that are whole or not there.

use crate::failure::Failure;
use std::io::Write;
use std::path::Path;

/// Writes a file so that it is either whole or not there: a temporary neighbour, then a rename.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let fail = |e: std::io::Error| Failure::input(format!("cannot write {}: {e}", path.display()));
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let name = path
        .file_name()
        .ok_or_else(|| Failure::input(format!("{} does not name a file", path.display())))?;
    let mut temporary = name.to_os_string();
    temporary.push(format!(".{}.partial", std::process::id()));
    let temporary = folder.join(temporary);
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        fail(e)
    })
}
