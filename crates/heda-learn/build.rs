//! Packs the public data sets for `bundled`: they are in the repository once, as plain CSV.

use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let datasets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
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
