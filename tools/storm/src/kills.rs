//! Processes that are killed, at random times and at exact system calls, and disks that are full for
//! a while. Afterwards every job must finish with the same model, every release must be paid for
//! once, and no file may be left over.

use crate::chance::Chance;
use crate::tally::{Tally, Trouble};
use crate::world::{Daemon, Environment, Job, PROVIDERS, Run, World};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const KILLS: &str = "kill -9 at a random time";
pub(crate) const EXACT: &str = "kill -9 at an exact system call";
pub(crate) const FULL: &str = "disk full at an exact system call, then room again";
const MODELS: &str = "models compared with the undisturbed one";
const PAID: &str = "releases that must be paid for exactly once";
const ORPHANS: &str = "folders searched for left-over files";

const PRIVATE_KILLS: &str = "of these, during a private job";
const CHARGED: &str =
    "ledgers compared, job by job, with all noisy gradients seen, and with the plan";
const WITHOUT: &str = "private models that went on without an answer that was lost";

/// Publishes, so that there is something to pay for, and encrypts. Few iterations: more jobs.
const TERMS: &str = "engine = \"resident\"\niota = 5\nepsilon = 0.1\niterations = 6";
/// Every gradient is paid for.
const PRIVATE_TERMS: &str = "[privacy]\nepsilon = 1\ndelta = 1e-5\nrows = 466";

/// Every third job is private.
fn is_private(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// What jobs come to without any storm.
#[derive(Debug, Clone, Default)]
pub(crate) struct References {
    /// Models by seed.
    models: BTreeMap<u64, Value>,
    /// What a noisy gradient costs; nought before there was one.
    each: f64,
    /// What a whole private job costs.
    whole: f64,
}

/// Whether a model went on without answers that were lost on the line.
fn has_lost_answers(model: &Value) -> bool {
    model["provenance"]["notes"]["lost_answers"].is_string()
}

/// A model without what its providers told at the very end, when one may be gone.
fn comparable(model: &Value) -> Value {
    let mut model = model.clone();
    if let Some(privacy) = model["provenance"]["privacy"].as_object_mut() {
        privacy.remove("charged");
    }
    model
}

/// Trains every job once in peace.
pub(crate) fn references(heda: &Path, jobs: u64, tally: &mut Tally) -> Result<References, Trouble> {
    let mut course = Course::begin(heda, References::default())?;
    for _ in 0..jobs {
        let seed = course.next_job()?;
        let model = course.world.finish(seed)?;
        course.references.models.insert(seed, model);
        if is_private(seed) && course.references.each == 0.0 {
            let seen = course.world.gradients_seen(seed)?;
            course.references.whole = course.world.charged(0)?;
            course.references.each = course.references.whole / seen as f64;
        }
    }
    let references = course.references.clone();
    course.end(tally)?;
    Ok(references)
}

/// Two providers under way, and what they should have done so far. A job of one seed has one name,
/// so that each can be done once in a course.
pub(crate) struct Course {
    pub(crate) world: World,
    daemons: Vec<Daemon>,
    references: References,
    /// The last job.
    seed: u64,
    /// What every ledger showed before it.
    charged_before: Vec<f64>,
}

impl Course {
    pub(crate) fn begin(heda: &Path, references: References) -> Result<Self, Trouble> {
        let world = World::new(heda)?;
        let daemons = vec![world.serve_well(0)?, world.serve_well(1)?];
        Ok(Self {
            world,
            daemons,
            references,
            seed: 0,
            charged_before: vec![0.0; PROVIDERS.len()],
        })
    }

    /// Whether every job was done.
    pub(crate) fn is_over(&self) -> bool {
        !self.references.models.contains_key(&(self.seed + 1))
    }

    fn next_job(&mut self) -> Result<u64, Trouble> {
        self.seed += 1;
        let providers = [0, 1].map(|place| (place, self.world.port(place)));
        self.world.write_job(&Job {
            seed: self.seed,
            terms: if is_private(self.seed) {
                PRIVATE_TERMS
            } else {
                TERMS
            },
            providers: &providers,
            loss_seconds: 60,
        })?;
        Ok(self.seed)
    }

    /// Finishes a job in peace and looks at what it left everywhere.
    fn check(&mut self, seed: u64, tally: &mut Tally) -> Result<(), Trouble> {
        match self.world.finish(seed) {
            Ok(model) if has_lost_answers(&model) => {
                tally.count(WITHOUT, 1);
                tally.expect(WITHOUT, is_private(seed), || {
                    format!("job {seed} is exact and went on without an answer")
                });
            }
            Ok(model) => {
                let reference = self.references.models.get(&seed).map(comparable);
                tally.count(MODELS, 1);
                tally.expect(MODELS, reference == Some(comparable(&model)), || {
                    format!("job {seed} differs")
                });
            }
            Err(trouble) => tally.fail(MODELS, trouble.to_string()),
        }
        for (place, name) in PROVIDERS.iter().enumerate().take(self.daemons.len()) {
            let (releases, stored) = self.world.releases(place)?;
            tally.count(PAID, 1);
            let jobs = (1..=self.seed).filter(|seed| !is_private(*seed)).count();
            tally.expect(PAID, releases == jobs && stored, || {
                format!("{name} has {releases} releases of {jobs} jobs")
            });
        }
        self.check_charges(seed, tally)?;
        tally.count(ORPHANS, 1);
        let orphans = self.world.orphans(seed)?;
        tally.expect(ORPHANS, orphans.is_empty(), || orphans.join(", "));
        Ok(())
    }

    /// For every job each ledger must show at least what the data user saw of it, in all attempts: two
    /// answers for one payment would be noise that cancels. And never more than an undisturbed job
    /// costs: no answer leaves twice.
    fn check_charges(&mut self, seed: u64, tally: &mut Tally) -> Result<(), Trouble> {
        let seen = match is_private(seed) {
            true => self.world.gradients_seen(seed)?,
            false => 0,
        };
        for (place, name) in PROVIDERS.iter().enumerate().take(self.daemons.len()) {
            let charged = self.world.charged(place)?;
            let paid = charged - self.charged_before[place];
            self.charged_before[place] = charged;
            // A twentieth of what the undisturbed job paid was for means and deviations.
            let least = seen as f64 * self.references.each * 0.95;
            tally.count(CHARGED, 1);
            let most = match is_private(seed) {
                true => self.references.whole,
                false => 0.0,
            };
            let within = paid >= least - 1e-9 && paid <= most + 1e-9;
            tally.expect(CHARGED, within, || {
                format!(
                    "{name} was paid {paid} for {seen} gradients in job {seed}; {most} is the plan"
                )
            });
        }
        Ok(())
    }

    fn restart(&mut self, place: usize, environment: Environment<'_>) -> Result<bool, Trouble> {
        // It needs its port: the old process has to be gone first.
        match self.world.serve(place, environment)? {
            Some(daemon) => {
                self.daemons[place] = daemon;
                Ok(true)
            }
            None => {
                self.daemons[place] = self.world.serve_well(place)?;
                Ok(false)
            }
        }
    }

    fn kill_daemon(&mut self, place: usize) -> Result<(), Trouble> {
        let daemon = self.daemons.remove(place);
        daemon.kill()?;
        let again = self.world.serve_well(place)?;
        self.daemons.insert(place, again);
        Ok(())
    }

    /// One job during which parties are killed again and again.
    pub(crate) fn random_kills(
        &mut self,
        most: u64,
        chance: &mut Chance,
        tally: &mut Tally,
    ) -> Result<(), Trouble> {
        let seed = self.next_job()?;
        let mut run = self.world.train(seed, &[])?;
        for _ in 0..most {
            std::thread::sleep(chance.pause(500));
            if run.ended()?.is_some() {
                break;
            }
            match chance.below(4) {
                place @ (0 | 1) => self.kill_daemon(place)?,
                _ => {
                    // It may have been done, and about to end.
                    if !run.kill()? || self.world.is_done(seed) {
                        break;
                    }
                    run = self.world.train(seed, &[])?;
                }
            }
            tally.count(KILLS, 1);
            tally.count(PRIVATE_KILLS, u64::from(is_private(seed)));
        }
        settle(&mut run)?;
        self.check(seed, tally)
    }

    /// One job during which one party meets its end, or a full disk, at an exact system call.
    pub(crate) fn exact(
        &mut self,
        shim: &Path,
        full: bool,
        chance: &mut Chance,
        tally: &mut Tally,
    ) -> Result<(), Trouble> {
        let seed = self.next_job()?;
        let calls = ["write", "fsync", "rename", "link", "unlink", "truncate"];
        let call = *chance.of(&calls[..if full { 2 } else { 6 }]);
        let most = match call {
            "write" => 60,
            "fsync" => 40,
            "rename" => 9,
            _ => 3,
        };
        let environment = [
            ("LD_PRELOAD", shim.display().to_string()),
            ("STORM_CALL", call.to_owned()),
            ("STORM_AT", (1 + chance.below(most)).to_string()),
            ("STORM_MODE", if full { "full" } else { "kill" }.to_owned()),
            ("STORM_MANY", chance.below(6).to_string()),
        ];
        let kind = if full { FULL } else { EXACT };
        let victim = chance.below(3);
        if victim < 2 {
            let daemon = self.daemons.remove(victim);
            daemon.terminate()?;
            let struck = self.world.serve(victim, &environment)?;
            let started = struck.is_some();
            let daemon = match struck {
                Some(daemon) => daemon,
                None => self.world.serve_well(victim)?,
            };
            self.daemons.insert(victim, daemon);
            let mut run = self.world.train(seed, &[])?;
            let struck = self.watch(victim, &mut run)?;
            tally.count(kind, u64::from(struck || !started || full));
        } else {
            let mut run = self.world.train(seed, &environment)?;
            let status = run.wait()?;
            tally.count(kind, u64::from(status.code().is_none() || full));
            let known = [None, Some(0), Some(2), Some(5)].contains(&status.code());
            tally.expect(kind, known, || {
                format!("ended with {status}: {}", run.words())
            });
        }
        if victim < 2 {
            // A strike that did not come must not outlast the job.
            self.kill_daemon(victim)?;
        }
        self.check(seed, tally)
    }

    /// Waits for a job, and puts up the daemon again as soon as it is struck; whether it was.
    fn watch(&mut self, victim: usize, run: &mut Run) -> Result<bool, Trouble> {
        let mut struck = false;
        while run.ended()?.is_none() {
            if self.daemons[victim].has_ended()? {
                struck |= true;
                self.restart(victim, &[])?;
            }
            std::thread::sleep(Duration::from_millis(5));
            if run.began.elapsed() > Duration::from_secs(120) {
                run.kill()?;
                break;
            }
        }
        if self.daemons[victim].has_ended()? {
            struck = true;
            self.restart(victim, &[])?;
        }
        Ok(struck)
    }

    /// SIGTERM at the end: everybody goes in peace.
    pub(crate) fn end(self, tally: &mut Tally) -> Result<(), Trouble> {
        const TERM: &str = "SIGTERM without work under way";
        for panic in self.world.panics()? {
            tally.fail(TERM, panic);
        }
        for daemon in self.daemons {
            tally.count(TERM, 1);
            let status = daemon.terminate()?;
            tally.expect(TERM, status.success(), || status.to_string());
        }
        Ok(())
    }
}

fn settle(run: &mut Run) -> Result<(), Trouble> {
    run.wait().map(|_| ())
}

/// Compiles what is loaded into processes; nothing if there is no C compiler.
pub(crate) fn shim(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
    std::fs::write(&source, include_str!("shim.c")).ok()?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
    compiler.arg(&library).arg(&source).arg("-ldl");
    compiler.status().ok()?.success().then_some(library)
}
