//! `docs/architecture.md` names every module. `UPDATE_DOCUMENTS=1` writes the map anew.
#![allow(clippy::unwrap_used)]

use heda_habits::modules::{map, with_map};
use heda_habits::sources::root;

#[test]
fn the_map_of_modules_is_up_to_date() {
    let path = root().join("docs/architecture.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let map = map().unwrap();
    assert!(
        !map.contains("(no documentation)"),
        "a module says nothing of itself:\n{map}"
    );
    let expected = with_map(&found, &map).expect("docs/architecture.md has a place for the map");
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    assert!(
        found == expected,
        "the map of modules is out of date; run: UPDATE_DOCUMENTS=1 cargo test -p heda-habits --test module_map"
    );
}
