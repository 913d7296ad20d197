//! No decoder without a target: every function of the crates that turns foreign bytes into
//! something is reached by a target, or it is said here why not. What counts as one is decided by
//! `tools/habits/src/decoders.rs`.
#![allow(clippy::unwrap_used)]

use heda_fuzz::targets::TARGETS;
use heda_habits::decoders::decoders;
use std::collections::{BTreeMap, BTreeSet};

/// Functions that the rule finds and no target reaches, with the reason.
const NOT_FUZZED: &[(&str, &str)] = &[
    (
        "heda-experiments intervals::run",
        "reads a sheet that the experiment wrote",
    ),
    (
        "heda-node agreed::parse_key",
        "reads 32 bytes by unhex and a key by ed25519-dalek",
    ),
    (
        "heda JobFile::load",
        "reads by JobConfig::load and Schema::read",
    ),
    ("heda cost::peak_memory", "reads what the system says"),
    ("heda data::read", "reads by TableReader::read_file"),
    ("heda identity::load_or_create", "reads by Identity::load"),
    (
        "heda know::know",
        "changes lines of a file that ProviderConfig::load has read",
    ),
    ("heda model::read", "reads by Model::read"),
    ("heda provider::load", "reads by ProviderConfig::load"),
    ("heda schema::propose", "reads by infer::propose"),
    ("heda schema::propose_columns", "looks at columns in memory"),
    ("heda schema::read", "reads by Schema::read_with_text"),
    (
        "heda-cli options::loss",
        "takes one word of its own command line",
    ),
    (
        "heda-cli plan::run_apart",
        "reads what the same program writes",
    ),
    (
        "heda-crypto RandomIndices::correct",
        "takes our own indices",
    ),
    ("heda-crypto Roster::new", "takes the name of our own job"),
    (
        "heda-experiments Case::read",
        "reads by Schema::parse and TableReader::read_file",
    ),
    (
        "heda-experiments Sheet::open",
        "reads what the same program wrote",
    ),
    (
        "heda-experiments Reference::read",
        "reads JSON that a script of ours wrote, by serde_json",
    ),
    (
        "heda clock::processor_seconds",
        "reads what the system says",
    ),
    ("heda-experiments defaults::names", "lists a folder"),
    (
        "heda-experiments defaults::run",
        "reads by Reference::read, and a page that it writes into",
    ),
    (
        "heda-experiments document::run",
        "changes a document of this repository",
    ),
    (
        "heda-experiments private::held_out",
        "reads what a script of this repository wrote",
    ),
    ("heda-experiments private::schemas", "lists a folder"),
    (
        "heda-node FolderLock::take",
        "opens a folder, reads nothing",
    ),
    (
        "heda-node LedgerReader::copy_to",
        "opens what it has written, reads nothing",
    ),
    (
        "heda-node Trust::chains_to",
        "webpki decodes; a stranger's certificate stops in identify",
    ),
    (
        "heda-node Verifier::verify_server_cert",
        "calls Trust::identify",
    ),
    (
        "heda-node Verifier::verify_tls12_signature",
        "refuses everything",
    ),
    (
        "heda-node Verifier::verify_tls13_signature",
        "rustls decodes",
    ),
    (
        "heda-node backup::copy",
        "copies bytes, whatever they are, up to a limit",
    ),
    (
        "heda-node chain::data_sets",
        "reads the entries that chain::verify reads, and passes over what cannot be read",
    ),
    ("heda-node files::remove_partial", "lists a folder"),
    (
        "heda-node files::sync_folder",
        "opens a folder, reads nothing",
    ),
    ("heda-node fingerprint::ed25519_key", "webpki decodes"),
    ("heda-node serve::row_secret", "any 32 bytes are a secret"),
    (
        "heda-paper PublicKey::from_bytes_insecure_for_tests",
        "for tests only",
    ),
    (
        "heda-paper RsaPublicKey::from_bytes_insecure_for_tests",
        "for tests only",
    ),
];

fn reached() -> BTreeSet<String> {
    let all = TARGETS.iter().flat_map(|(_, decoders)| decoders.iter());
    all.map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_decoder_has_a_target() {
    let found = decoders().unwrap();
    let excused: BTreeSet<String> = NOT_FUZZED
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let reached = reached();
    let both: Vec<_> = reached.intersection(&excused).collect();
    assert!(both.is_empty(), "reached and excused: {both:#?}");
    let known: BTreeSet<String> = reached.union(&excused).cloned().collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(
        new.is_empty(),
        "decoders without a target in fuzz/src/targets/mod.rs: {new:#?}"
    );
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "named as decoders, but there are none of this name: {gone:#?}"
    );
}

const BEGIN: &str = "<!-- decoders -->\n";
const END: &str = "<!-- end of decoders -->\n";

/// The list in the README: by crate, every decoder with its targets, then those that have none.
fn list() -> String {
    let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (target, decoders) in TARGETS {
        for decoder in *decoders {
            targets.entry(decoder).or_default().push(target);
        }
    }
    let mut list = String::from("| decoder | targets |\n| --- | --- |\n");
    for (decoder, targets) in targets {
        let (name, function) = decoder.split_once(' ').unwrap();
        list += &format!("| {name} `{function}` | {} |\n", targets.join(", "));
    }
    list += "\nFunctions that look like decoders and have no target:\n\n";
    for (decoder, reason) in NOT_FUZZED {
        let (name, function) = decoder.split_once(' ').unwrap();
        list += &format!("- {name} `{function}`: {reason}\n");
    }
    list
}

#[test]
fn the_list_in_the_readme_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let found = std::fs::read_to_string(path).unwrap();
    let (before, rest) = found.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}{END}{after}", list());
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    assert!(
        found == expected,
        "out of date; run: UPDATE_DOCUMENTS=1 cargo test -p heda-fuzz --test decoders"
    );
}
