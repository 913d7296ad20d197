//! `cargo run -p heda-habits --bin mutants`: changes the sources in every way that `tools/mutants.toml` asks
//! for, and demands that a test notices each change.

use heda_habits::mutants::page::{section, with_section};
use heda_habits::mutants::rules::Rules;
use heda_habits::mutants::state::{KEPT, Outcome, State};
use heda_habits::mutants::tests::{Suite, outcome};
use heda_habits::mutants::tree::Tree;
use heda_habits::mutants::{Mutant, digest};
use heda_habits::mutations::PAGE;
use heda_habits::sources::root;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
Changes the sources in every way that tools/mutants.toml asks for, and runs the tests that reach each change.

  --list             print all mutants and stop
  --page             write what was found so far into tools/mutants.jsonl and its summary into docs/mutations.md,
                     and stop
  --package NAME     only mutants of this package (may be repeated)
  --only-own-tests   build and run only tests of the mutants' own packages
  --shard I/N        only every N-th mutant, from the I-th on (1 to N)
  --sample N SEED    N mutants of one package, both chosen by the text SEED; nothing is remembered, and only those that
                     a test noticed before must be noticed, within three runs where tests draw at random
  --again            try survivors of earlier runs again, because there may be new tests
  --endless          try those of earlier runs again whose tests did not end; each takes half a minute and more
  --minutes M        stop after so many minutes

A run appends what it finds to target/mutants/results.jsonl. The next one goes on from there and from
tools/mutants.jsonl, which the repository keeps.
Fails if a mutant survives without a reason in tools/mutants.toml.";

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    help: bool,
    list: bool,
    page: bool,
    again: bool,
    endless: bool,
    only_own_tests: bool,
    packages: Vec<String>,
    shard: Option<(usize, usize)>,
    sample: Option<(usize, String)>,
    minutes: Option<u64>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number"));
            match word.as_str() {
                "--help" => options.help = true,
                "--list" => options.list = true,
                "--page" => options.page = true,
                "--again" => options.again = true,
                "--endless" => options.endless = true,
                "--only-own-tests" => options.only_own_tests = true,
                "--package" => options.packages.push(value()?),
                "--minutes" => options.minutes = Some(number(&value()?)? as u64),
                "--sample" => options.sample = Some((number(&value()?)?, value()?)),
                "--shard" => {
                    let text = value()?;
                    let parts = text.split_once('/').ok_or("--shard is I/N")?;
                    options.shard = Some((number(parts.0)?, number(parts.1)?));
                }
                _ => return Err(format!("{word} is no option; --help lists them")),
            }
        }
        match options.shard {
            Some((which, count)) if which == 0 || which > count => {
                Err(format!("there is no shard {which} of {count}"))
            }
            _ => Ok(options),
        }
    }

    /// The packages whose mutants are tried.
    fn packages(&self, rules: &Rules) -> Vec<String> {
        let all = match self.packages.is_empty() {
            true => rules.packages(),
            false => self.packages.clone(),
        };
        match &self.sample {
            Some((_, seed)) => {
                let which = digest(seed) as usize % all.len().max(1);
                all.into_iter().skip(which).take(1).collect()
            }
            None => all,
        }
    }

    /// What need not be tried again.
    fn known(&self, mutant: &Mutant, state: &State) -> Option<Outcome> {
        let known = state.of(mutant)?.outcome;
        let is_tried_again = match self.sample {
            Some(_) => known != Outcome::Unviable,
            None => (self.again && known.is_open()) || (self.endless && known == Outcome::Timeout),
        };
        (!is_tried_again).then_some(known)
    }

    /// How often a mutant of a sample may be tried until a test notices it: some tests draw at random.
    fn runs(&self, mutant: &Mutant, state: &State) -> u32 {
        let before = state.of(mutant).map(|finding| finding.outcome);
        match self.sample.is_some() && before == Some(Outcome::Caught) {
            true => 3,
            false => 1,
        }
    }

    /// The mutants that are tried, in the order in which they are.
    fn chosen<'a>(&self, mutants: &'a [Mutant], packages: &[String]) -> Vec<&'a Mutant> {
        let ours = mutants.iter().filter(|m| packages.contains(&m.package));
        let mut chosen: Vec<&Mutant> = ours.collect();
        if let Some((count, seed)) = &self.sample {
            chosen.sort_by_key(|m| digest(&format!("{seed} {:?}", m.key)));
            chosen.truncate(*count);
        }
        let (which, count) = self.shard.unwrap_or((1, 1));
        chosen.into_iter().skip(which - 1).step_by(count).collect()
    }
}

fn main() -> ExitCode {
    let done = Options::read(std::env::args().skip(1)).and_then(|options| run(&options));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool, String> {
    if options.help {
        println!("{HELP}");
        return Ok(true);
    }
    let rules = Rules::read()?;
    let mutants = rules.mutants()?;
    if options.list {
        for Mutant { key, .. } in &mutants {
            println!("{}, {}: {}", key.file, key.function, key.mutation);
        }
        return Ok(true);
    }
    let folder = root().join("target/mutants");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut state = State::open(&root().join(KEPT), &folder.join("results.jsonl"))?;
    if options.page {
        write_page(&rules, &mutants, &state)?;
        return Ok(true);
    }
    try_all(options, &rules, &mutants, &mut state)
}

fn write_page(rules: &Rules, mutants: &[Mutant], state: &State) -> Result<(), String> {
    let path = root().join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(|e| format!("{PAGE}: {e}"))?;
    let page = with_section(&page, &section(rules, mutants, state));
    std::fs::write(path, page).map_err(|e| format!("{PAGE}: {e}"))?;
    std::fs::write(root().join(KEPT), state.kept(mutants)?).map_err(|e| format!("{KEPT}: {e}"))
}

/// Builds the copy with all mutants and records what tests reach. Mutants that do not compile are added to the state.
fn prepared(
    rules: &Rules,
    mutants: &[Mutant],
    packages: &[String],
    own_tests: bool,
    state: &mut State,
) -> Result<Vec<Suite>, String> {
    let unviable = |mutant: &&Mutant| {
        let found = state.of(mutant).map(|finding| finding.outcome);
        found == Some(Outcome::Unviable)
    };
    let known: BTreeSet<u32> = mutants.iter().filter(unviable).map(|m| m.id).collect();
    let mut without = known.clone();
    let mut tree = Tree::new(rules, mutants, packages)?;
    let tested = match own_tests {
        true => packages.to_vec(),
        false => rules.packages(),
    };
    let programs = tree.build(&tested, &mut without)?;
    for mutant in mutants.iter().filter(|m| without.contains(&m.id)) {
        if !known.contains(&mutant.id) {
            state.add(mutant, Outcome::Unviable, None)?;
        }
    }
    let folder = tree.state().join("reach");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut suites = Vec::new();
    for program in programs {
        println!("what {} {} reaches", program.package, program.target);
        suites.push(Suite::record(program, &folder)?);
    }
    Ok(suites)
}

fn try_all(
    options: &Options,
    rules: &Rules,
    mutants: &[Mutant],
    state: &mut State,
) -> Result<bool, String> {
    let began = Instant::now();
    let packages = options.packages(rules);
    let own_tests = options.only_own_tests || options.sample.is_some();
    let suites = prepared(rules, mutants, &packages, own_tests, state)?;
    let allowed = options
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let chosen = options.chosen(mutants, &packages);
    let mut all_noticed = true;
    for (number, mutant) in chosen.iter().enumerate() {
        if allowed.is_some_and(|allowed| began.elapsed() > allowed) {
            println!("the time is over; {number} of {} were tried", chosen.len());
            break;
        }
        let found = match options.known(mutant, state) {
            Some(known) => known,
            None => {
                let mut found = tried(options, mutant, &suites, state)?;
                for _ in 1..options.runs(mutant, state) {
                    if found.is_open() {
                        found = tried(options, mutant, &suites, state)?;
                    }
                }
                println!(
                    "{}/{} {found:?}: {:?}",
                    number + 1,
                    chosen.len(),
                    mutant.key
                );
                found
            }
        };
        if !found.is_open() || rules.reason(&mutant.key).is_some() {
            continue;
        }
        let before = state.of(mutant).map(|finding| finding.outcome);
        match options.sample.is_some() && before != Some(Outcome::Caught) {
            true => println!(
                "nobody noticed before either, or it is new: {:?}",
                mutant.key
            ),
            false => {
                println!("nobody notices {:?}", mutant.key);
                all_noticed = false;
            }
        }
    }
    Ok(all_noticed)
}

/// Runs the tests that reach a mutant; what they say is remembered but for samples.
fn tried(
    options: &Options,
    mutant: &Mutant,
    suites: &[Suite],
    state: &mut State,
) -> Result<Outcome, String> {
    let (found, test) = outcome(suites, mutant, &root().join("target/mutants"))?;
    if options.sample.is_none() {
        state.add(mutant, found, test)?;
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use heda_habits::mutants::Key;

    fn options(words: &str) -> Result<Options, String> {
        Options::read(words.split_whitespace().map(str::to_owned))
    }

    fn mutants(count: u32) -> Vec<Mutant> {
        let one = |id: u32| Mutant {
            key: Key {
                file: "a.rs".into(),
                function: "f".into(),
                mutation: id.to_string(),
            },
            area: "area".into(),
            package: if id.is_multiple_of(2) { "even" } else { "odd" }.into(),
            text: 0,
            id,
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn shards_are_all_mutants_and_each_once() {
        let (mutants, packages) = (mutants(11), ["even".to_owned(), "odd".to_owned()]);
        let shards = ["1/3", "2/3", "3/3"].map(|shard| {
            let options = options(&format!("--shard {shard}")).unwrap();
            let chosen = options.chosen(&mutants, &packages);
            chosen.iter().map(|m| m.id).collect::<Vec<u32>>()
        });
        let mut all = shards.concat();
        all.sort_unstable();
        assert_eq!(all, (1..=11).collect::<Vec<u32>>());
        assert!(options("--shard 0/3").is_err() && options("--shard 4/3").is_err());
    }

    #[test]
    fn only_what_is_asked_for_is_tried_again() {
        let folder = std::env::temp_dir().join(format!("heda-again-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut state = State::open(&folder.join("kept"), &folder.join("state")).unwrap();
        let outcomes = [
            Outcome::Caught,
            Outcome::Survived,
            Outcome::Unreached,
            Outcome::Timeout,
            Outcome::Unviable,
        ];
        let mutants = mutants(6);
        for (mutant, outcome) in mutants.iter().zip(outcomes) {
            state.add(mutant, outcome, None).unwrap();
        }
        for (words, tried) in [
            ("", &[6][..]),
            ("--again", &[2, 3, 6]),
            ("--endless", &[4, 6]),
            ("--again --endless", &[2, 3, 4, 6]),
            ("--sample 6 seed", &[1, 2, 3, 4, 6]),
        ] {
            let options = options(words).unwrap();
            let unknown = mutants
                .iter()
                .filter(|m| options.known(m, &state).is_none());
            let found: Vec<u32> = unknown.map(|m| m.id).collect();
            assert_eq!(found, tried, "{words}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_sample_is_the_same_for_the_same_seed_and_another_for_another() {
        let (mutants, packages) = (mutants(400), ["even".to_owned()]);
        let sample = |seed: &str| {
            let options = options(&format!("--sample 12 {seed}")).unwrap();
            let chosen = options.chosen(&mutants, &packages);
            chosen.iter().map(|m| m.id).collect::<Vec<u32>>()
        };
        assert_eq!(sample("abc"), sample("abc"));
        assert_ne!(sample("abc"), sample("abd"));
        assert_eq!(sample("abc").len(), 12);
        assert!(sample("abc").iter().all(|id| id % 2 == 0));
    }
}
