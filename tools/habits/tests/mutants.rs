//! The list of mutants made by machine fits the sources.
#![allow(clippy::unwrap_used)]

use heda_habits::mutants::page::section_of;
use heda_habits::mutants::rules::Rules;
use heda_habits::mutations::PAGE;
use heda_habits::sources::root;
use std::collections::BTreeSet;

#[test]
fn every_pattern_finds_files_and_every_reason_names_a_mutant() {
    let rules = Rules::read().unwrap();
    let mutants = rules.mutants().unwrap();
    let areas: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.area.as_str()).collect();
    for area in &rules.areas {
        assert!(
            areas.contains(area.name.as_str()),
            "no file of {}",
            area.name
        );
    }
    for known in &rules.equivalents {
        let named = mutants.iter().any(|mutant| known.names(&mutant.key));
        assert!(named, "there is no such mutant any more: {known:?}");
        assert!(known.reason.len() > 20, "no reason: {known:?}");
    }
}

#[test]
fn every_mutant_has_a_name_of_its_own_and_none_is_of_a_test() {
    let mutants = Rules::read().unwrap().mutants().unwrap();
    let keys: BTreeSet<_> = mutants.iter().map(|mutant| &mutant.key).collect();
    assert_eq!(keys.len(), mutants.len());
    let tests = mutants.iter().filter(|m| m.key.file.contains("test"));
    assert_eq!(tests.count(), 0);
}

/// The page is written by the program; areas that it does not name were not looked at.
#[test]
fn the_page_has_a_summary_of_every_area() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    for area in Rules::read().unwrap().areas {
        let line = format!("\n| {} | ", area.name);
        assert!(
            section_of(&page).contains(&line),
            "{PAGE} lacks {}",
            area.name
        );
    }
}
