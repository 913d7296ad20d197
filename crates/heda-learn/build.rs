//! Packs the public data sets for `bundled`: they are in the repository once, as plain CSV.

use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    // Asked for when it runs: a build folder may outlive the sources that it was made from.
    let folder = |name| {
        let path = std::env::var_os(name).ok_or(io::ErrorKind::NotFound)?;
        Ok::<_, io::Error>(PathBuf::from(path))
    };
    let datasets = folder("CARGO_MANIFEST_DIR")?.join("../../datasets");
    let out = folder("OUT_DIR")?;
    for name in ["bcwd", "adult", "crx", "car"] {
        let source = datasets.join(name).with_extension("csv");
        println!("cargo::rerun-if-changed={}", source.display());
        let packed = File::create(out.join(name).with_extension("csv.gz"))?;
        let mut encoder = GzEncoder::new(packed, Compression::best());
        io::copy(&mut File::open(&source)?, &mut encoder)?;
        encoder.finish()?;
    }
    Ok(())
}
