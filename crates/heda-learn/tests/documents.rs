//! What the documents show is what the library reads.

#![allow(clippy::unwrap_used)]

use heda_learn::bundled::{Bundle, Coding};
use heda_learn::schema::{Schema, SchemaError};
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn toml_samples(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join(document)).unwrap();
    let blocks = text.split("```toml\n").skip(1);
    let sample = |block: &str| block.split("```").next().unwrap().to_owned();
    blocks.map(sample).collect()
}

#[test]
fn the_sample_schema_is_sound() -> Result<(), SchemaError> {
    let samples = toml_samples("docs/schema.md");
    assert_eq!(samples.len(), 2);
    let number = Schema::parse(&samples[1], "docs/schema.md")?;
    assert_eq!(number.label().number().unwrap().bounds.upper(), 400.0);
    assert_eq!(
        (number.label().models(), number.label().classes().len()),
        (1, 0)
    );
    let schema = Schema::parse(&samples[0], "docs/schema.md")?;
    assert_eq!(schema.width(), 7);
    assert_eq!(schema.label().classes(), ["well", "ill or severely ill"]);
    Ok(())
}

#[test]
fn schema_files_are_the_bundled_ones() -> Result<(), SchemaError> {
    for bundle in Bundle::ALL {
        for coding in [Coding::Paper, Coding::Natural] {
            let file = format!("datasets/{bundle}.{coding}.toml");
            let schema = Schema::read(&repository().join(file))?;
            let bundled = bundle.schema(coding);
            assert_eq!(schema, bundled);
            assert_eq!(schema.fingerprint(), bundled.fingerprint());
            assert_eq!(schema.name(), format!("{bundle}.{coding}"));
        }
    }
    Ok(())
}

#[test]
fn bundled_rows_are_the_files() {
    for bundle in Bundle::ALL {
        let mut packed = Vec::new();
        std::io::Read::read_to_end(&mut bundle.csv(), &mut packed).unwrap();
        let file = std::fs::read(repository().join(format!("datasets/{bundle}.csv"))).unwrap();
        assert!(packed == file, "{bundle}");
    }
}
