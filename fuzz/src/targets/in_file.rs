//! Input for decoders that read from a path.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file in a folder of its own, which is deleted with the value.
pub(super) struct InFile {
    folder: TempDir,
    path: PathBuf,
}

impl InFile {
    /// A file of this name.
    pub(super) fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = folder.path().join(name);
        Self { folder, path }
    }

    /// The folder that it lies in.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces the content; returns where it is.
    pub(super) fn put(&self, input: &[u8]) -> &Path {
        std::fs::write(&self.path, input).expect("room for temporary files");
        &self.path
    }
}
