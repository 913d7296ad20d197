//! Who learns what: the documents hold the table that the code has. `UPDATE_DOCUMENTS=1` puts it
//! there.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda::knowledge::{Disclosed, table};
use std::path::Path;

const DOCUMENTS: [&str; 3] = ["SECURITY.md", "docs/protocols.md", "docs/threat-model.md"];
/// Where the table begins and ends.
const PLACE: [&str; 2] = [
    "<!-- who learns what -->\n",
    "<!-- end of who learns what -->\n",
];

#[test]
fn the_documents_hold_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [start, end] = PLACE;
    for document in DOCUMENTS {
        let path = root.join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(start).expect(document);
        let (_, after) = rest.split_once(end).expect(document);
        let wanted = format!("{before}{start}\n{}\n{end}{after}", table());
        if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
            std::fs::write(&path, &wanted).unwrap();
        }
        let stale = text != wanted && std::env::var_os("UPDATE_DOCUMENTS").is_none();
        assert!(
            !stale,
            "{document} is out of date; run with UPDATE_DOCUMENTS=1"
        );
    }
}

#[test]
fn the_table_has_a_line_a_lesson() {
    let table = table();
    assert_eq!(table.lines().count(), 2 + Disclosed::ALL.len());
    for lesson in Disclosed::ALL {
        let cell = format!("| {} |", lesson.what());
        assert_eq!(table.matches(&cell).count(), 1, "{lesson:?}");
    }
}
