//! What a job will cost and reveal, for people and programs.

use crate::expectation::{Expected, expect};
use crate::failure::Failure;
use crate::planning::{Costs, Shape, Took, measure, measuring, planned_rows, run_whole};
use crate::{Job, RemoteJob};
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::description::{Protected, Ranking, Share};
use heda_job::job::JobSpec;
use heda_job::proposal::{Engine, Foreseen, JobId, Privacy};
use heda_learn::gradient::Batch;
use heda_learn::schema::Schema;
use serde::Serialize;
use std::sync::Arc;

/// What a job will cost and reveal.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// How gradients are computed.
    pub engine: Engine,
    /// Rows of all providers, held-out ones included.
    pub rows: usize,
    /// How many providers.
    pub providers: usize,
    /// Features of the schema.
    pub features: usize,
    /// How many of them are encrypted.
    pub iota: usize,
    /// At most, over all models and all penalties that are tried.
    pub iterations: u32,
    /// Evaluations on held-out rows; each counts as one of the day's iterations at a provider.
    pub evaluations: u32,
    /// Penalties that are tried for each model.
    pub penalties: u32,
    /// With how many rows it was measured.
    pub measured_rows: usize,
    /// Time of the whole job.
    pub seconds: f64,
    /// Between these it should be.
    pub seconds_range: [f64; 2],
    /// Of that, what does not depend on iterations.
    pub seconds_setup_and_evaluation: f64,
    /// And what each iteration adds.
    pub seconds_per_iteration: f64,
    /// To all providers.
    pub bytes_user_to_providers: u64,
    /// From all providers.
    pub bytes_providers_to_user: u64,
    /// With each.
    pub round_trips_per_provider: u64,
    /// All parties and their rows together.
    pub peak_memory_bytes: Option<u64>,
    /// Between these it should be.
    pub peak_memory_bytes_range: Option<[u64; 2]>,
    /// Numbers that gradients will reveal, and cells that stay unknown.
    pub gradient_numbers: u64,
    /// Cells that stay unknown.
    pub unknown_cells: u64,
    /// What a private job promises, and the noise that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<PrivatePlanned>,
    /// What the job then took, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<PlanCheck>,
}

/// The promise of a private job.
#[derive(Debug, Serialize)]
pub struct PrivatePlanned {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// Others on whose noise each provider counts.
    pub trusted: u32,
    /// Deviation of the noise in every number of a gradient, where a row adds 1 at most.
    pub noise_in_rows: f64,
    /// The same for every number of others that could be counted on, from none.
    pub noise_by_trusted: Vec<f64>,
    /// What a gradient costs a row, as mu squared.
    pub squared_per_gradient: f64,
    /// Accuracy on simulated rows, of a job that tells two classes apart.
    pub expected: Option<Expected>,
    /// How well held-out rows will tell the accuracy, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Foreseen>,
}

impl PrivatePlanned {
    fn of(spec: &JobSpec, providers: usize, training: usize, held_out: u64) -> Option<Self> {
        let privacy = spec.job.privacy()?;
        let plan = privacy.plan(spec.schema.width() + 1).ok()?;
        let randomness = Randomness::from_os();
        let expected = expect(&spec.schema, &privacy, providers, training, &randomness);
        let noise = |trusted| {
            let trusted = Some(trusted);
            Privacy { trusted, ..privacy }.noise_in_rows(&plan, providers)
        };
        Some(Self {
            epsilon: privacy.epsilon.to_f64(),
            delta: privacy.delta.get(),
            trusted: privacy.counts_on(providers),
            noise_in_rows: privacy.noise_in_rows(&plan, providers),
            noise_by_trusted: (0..providers as u32).map(noise).collect(),
            squared_per_gradient: plan.cost_of_gradient().squared(),
            // Rows of several classes are not simulated.
            expected: expected.ok().filter(|_| privacy.models.get() == 1),
            evaluation: privacy.foresee(&plan, providers, held_out),
        })
    }

    fn text(&self) -> Vec<String> {
        let choices = self.noise_by_trusted.iter().enumerate();
        let choices = choices.map(|(trusted, noise)| format!("{trusted}: {noise:.1}"));
        let promise = format!(
            "private   epsilon {} at delta {:e}; noise in every number of a gradient like {:.1} rows; by \
             how many others' noise is counted on: {}",
            self.epsilon,
            self.delta,
            self.noise_in_rows,
            choices.collect::<Vec<_>>().join(", ")
        );
        let expected = self.expected.as_ref().map(|expected| {
            let [low, high] = expected.private.map(|share| 100.0 * share);
            format!(
                "expect    on simulated rows, where training in clear is right in {:.1} %: {low:.1} to \
                 {high:.1} % in {} runs, {:.1} points less in the mean; real rows differ",
                100.0 * expected.clear,
                expected.runs,
                100.0 * expected.lost
            )
        });
        let evaluation = self.evaluation.as_ref();
        let evaluation = evaluation.map(|foreseen| format!("evaluate  {foreseen}"));
        let promise = std::iter::once(promise);
        promise.chain(expected).chain(evaluation).collect()
    }
}

/// What a job took that was planned.
#[derive(Debug, Serialize)]
pub struct PlanCheck {
    /// Time of the whole job.
    pub seconds: f64,
    /// To all providers.
    pub bytes_user_to_providers: u64,
    /// From all providers.
    pub bytes_providers_to_user: u64,
    /// With each.
    pub round_trips_per_provider: u64,
    /// All parties together.
    pub peak_memory_bytes: Option<u64>,
    /// How much more than planned the time was, in percent; less if negative.
    pub time_off_percent: f64,
    /// The same of the memory.
    pub memory_off_percent: Option<f64>,
}

/// A measurement of a few iterations says no more than this about many, as a share.
const LEAST_SPREAD: f64 = 0.15;
/// How often each engine is measured; keys of engine `paper` take long.
const REPEATS: (u32, u32) = (3, 1);

/// What is to be planned.
#[derive(Debug)]
pub struct PlanSubject {
    /// The job.
    pub spec: JobSpec,
    /// All features, the encrypted ones first.
    pub order: Vec<usize>,
    /// How many of them are encrypted.
    pub iota: usize,
    /// Rows of all providers together, held-out ones included.
    pub rows: usize,
    /// How many providers.
    pub providers: usize,
}

impl PlanSubject {
    /// That there is something to plan.
    fn check(&self) -> Result<(), Failure> {
        let Self {
            iota,
            rows,
            providers,
            ..
        } = self;
        if *providers == 0 || rows / providers < 10 {
            return Err(Failure::input(format!(
                "{rows} rows for {providers} providers: each needs ten or more"
            )));
        }
        let features = self.order.len();
        match *iota > features {
            true => Err(Failure::input(format!(
                "iota is {iota}, but there are {features} features; choose 0 to {features}"
            ))),
            false => Ok(()),
        }
    }

    /// Rows of each provider.
    fn shares(&self) -> Vec<usize> {
        let parts = 0..self.providers;
        parts
            .map(|part| Batch::new(part, self.providers).share(self.rows).len())
            .collect()
    }

    fn shape<'a>(&'a self, shares: &'a [usize]) -> Shape<'a> {
        Shape {
            spec: &self.spec,
            order: &self.order,
            iota: self.iota,
            rows: shares,
            most_rows: planned_rows(self.providers, self.spec.job.held_out()),
            repeats: match self.spec.job.engine() {
                Engine::Resident => REPEATS.0,
                Engine::Paper => REPEATS.1,
            },
        }
    }

    /// Measures, and says what the job will cost.
    ///
    /// # Errors
    /// If there are too few rows, or the job cannot be run.
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.check()?;
        let shares = self.shares();
        Ok(of_costs(self, &measure(&self.shape(&shares))?))
    }

    /// Runs the whole job on random rows, and says what it took.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn run(&self) -> Result<Took, Failure> {
        self.check()?;
        let shares = self.shares();
        run_whole(&self.shape(&shares))
    }

    /// A job with remote providers, or with so many that have not answered yet. Rows that are not given
    /// are those that a private job states. Where ι is chosen later, all features are planned as
    /// encrypted: that takes longest.
    ///
    /// # Errors
    /// If it names a feature that the schema does not have, or nobody says how many rows there are.
    pub fn of_job(
        remote: &RemoteJob,
        rows: Option<usize>,
        unanswered: usize,
    ) -> Result<Self, Failure> {
        let rows = rows.or_else(|| remote.stated_rows()).ok_or_else(|| {
            Failure::input("the job does not say how many rows there are; give --rows")
        })?;
        let schema = remote.job().schema();
        let spec = remote.job().spec(JobId([0; 16]), &Randomness::from_os());
        let all = schema.columns().len();
        let (encrypted, iota): (Vec<usize>, usize) = match &spec.job.features().protected {
            Protected::Best(iota) => (Vec::new(), *iota),
            Protected::All | Protected::For(_) => (Vec::new(), all),
            Protected::Named(names) => {
                let place = |name: &String| {
                    let columns = schema.columns();
                    let found = columns.iter().position(|column| column.name() == name);
                    found.ok_or_else(|| {
                        Failure::input(format!("the schema has no feature \"{name}\""))
                    })
                };
                let places: Vec<usize> = names.iter().map(place).collect::<Result<_, _>>()?;
                let iota = places.len();
                (places, iota)
            }
        };
        let rest = (0..all).filter(|feature| !encrypted.contains(feature));
        let order = encrypted.iter().copied().chain(rest).collect();
        Ok(Self {
            order,
            iota,
            rows,
            providers: match remote.providers() {
                0 => unanswered,
                known => known,
            },
            spec,
        })
    }

    /// A job with providers that are not known yet.
    ///
    /// # Errors
    /// If there is no such job.
    pub fn of_schema(
        schema: impl Into<Arc<Schema>>,
        rows: usize,
        providers: usize,
        iota: Option<usize>,
        (iterations, batches): (u32, usize),
    ) -> Result<Self, Failure> {
        let schema = schema.into();
        let features = schema.columns().len();
        let settings = measuring(&schema, iterations, batches);
        let job = Job::builder("plan", schema)
            .settings(settings)
            .ranking(Ranking::Schema);
        let job = job.build().map_err(Failure::input)?;
        Ok(Self {
            spec: job.spec(JobId([0; 16]), &Randomness::from_os()),
            order: (0..features).collect(),
            iota: iota.unwrap_or(features),
            rows,
            providers,
        })
    }

    /// The same for a private job: its promise decides how it is trained.
    ///
    /// # Errors
    /// If there is no such job.
    pub fn of_promise(
        schema: impl Into<Arc<Schema>>,
        rows: usize,
        providers: usize,
        (epsilon, delta): (Epsilon, Option<f64>),
    ) -> Result<Self, Failure> {
        let schema = schema.into();
        let features = schema.columns().len();
        let training = rows - Share::USUAL.of(rows as u64) as usize;
        let job = Job::builder("plan", schema)
            .private_within(epsilon, delta, training)
            .map_err(Failure::input)?;
        let job = job.build().map_err(Failure::input)?;
        Ok(Self {
            spec: job.spec(JobId([0; 16]), &Randomness::from_os()),
            order: (0..features).collect(),
            iota: features,
            rows,
            providers,
        })
    }
}

fn of_costs(subject: &PlanSubject, costs: &Costs) -> Plan {
    let spec = &subject.spec;
    let models = spec.job.positives().len() as u32;
    let iterations = spec.gradients();
    // Of a path each penalty is counted on one half of the held-out rows, the result on the other.
    // A number's result is counted by two measures, a penalty by one of them.
    let tried = spec.job.path().map_or(0, |path| path.penalties);
    // A private job asks twice for each model.
    let (trial, measures) = match (spec.job.is_numeric(), spec.job.privacy()) {
        (true, _) => (0.5, 2),
        (false, None) => (1.0, models),
        (false, Some(_)) => (1.0, 2 * models),
    };
    let counted = 1.0 + trial * f64::from(tried);
    let counted_rows = if tried > 0 { counted / 2.0 } else { counted };
    let evaluations = match spec.job.held_out().is_some() {
        false => 0,
        true => tried * models + measures,
    };
    let features = spec.schema.features();
    let width = |chosen: &[usize]| {
        chosen
            .iter()
            .map(|&f| features[f].columns.len() as u64)
            .sum()
    };
    let encrypted: u64 = width(&subject.order[..subject.iota]);
    let taking_part: u64 = match spec.job.spending() {
        Some(_) => width(&subject.order),
        None => encrypted,
    };
    let seconds = costs.seconds.with_evaluations(iterations, counted_rows);
    let spread = costs.spread.max(LEAST_SPREAD);
    let around = |value: f64, spread: f64| [value / (1.0 + spread), value * (1.0 + spread)];
    let held_out = spec.job.held_out().of(subject.rows as u64);
    let training = subject.rows as u64 - held_out;
    Plan {
        engine: spec.job.engine(),
        rows: subject.rows,
        providers: subject.providers,
        features: features.len(),
        iota: subject.iota,
        iterations,
        evaluations,
        penalties: tried.max(1),
        measured_rows: costs.measured_rows,
        seconds,
        seconds_range: around(seconds, spread),
        seconds_setup_and_evaluation: costs.seconds.with_evaluations(0, counted_rows),
        seconds_per_iteration: costs.seconds.each,
        bytes_user_to_providers: costs.sent.with_evaluations(iterations, counted_rows) as u64,
        bytes_providers_to_user: costs.received.with_evaluations(iterations, counted_rows) as u64,
        round_trips_per_provider: costs.round_trips.with_evaluations(iterations, counted) as u64
            / subject.providers as u64,
        peak_memory_bytes: costs.peak_memory,
        peak_memory_bytes_range: costs.peak_memory.map(|bytes| {
            let [low, high] = around(bytes as f64, LEAST_SPREAD);
            [low as u64, high as u64]
        }),
        gradient_numbers: u64::from(iterations) * (taking_part + 1),
        unknown_cells: training * (encrypted + 1),
        private: PrivatePlanned::of(spec, subject.providers, training as usize, held_out),
        check: None,
    }
}

impl Plan {
    /// For people.
    pub fn in_words(&self) -> String {
        let plan = self;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let mut lines = vec![
            format!(
                "{} rows of {} providers, {} of {} features encrypted, at most {} iterations, engine {}",
                plan.rows, plan.providers, plan.iota, plan.features, plan.iterations, plan.engine
            ),
            format!(
                "time      {:.1} to {:.1} s on this machine: about {:.1} s for setup and evaluation, \
             {:.3} s an iteration",
                plan.seconds_range[0],
                plan.seconds_range[1],
                plan.seconds_setup_and_evaluation,
                plan.seconds_per_iteration
            ),
            format!(
                "traffic   {:.1} MB to providers, {:.1} MB back, {} round trips with each provider",
                megabytes(plan.bytes_user_to_providers),
                megabytes(plan.bytes_providers_to_user),
                plan.round_trips_per_provider
            ),
        ];
        if let Some([low, high]) = plan.peak_memory_bytes_range {
            lines.push(format!(
                "memory    {:.0} to {:.0} MB for all parties and their rows together",
                megabytes(low),
                megabytes(high),
            ));
        }
        if plan.measured_rows < plan.rows {
            lines.push(format!("measured  with {} rows", plan.measured_rows));
        }
        if plan.penalties > 1 {
            lines.push(format!(
                "penalty   {} are tried: {} iterations and {} evaluations in all",
                plan.penalties, plan.iterations, plan.evaluations
            ));
        }
        lines.push(format!(
            "reveals   {} numbers of gradients about {} unknown cells",
            plan.gradient_numbers, plan.unknown_cells
        ));
        lines.extend(plan.private.iter().flat_map(PrivatePlanned::text));
        if let Some(check) = &plan.check {
            lines.push(format!(
            "it took   {:.1} s ({:+.0} %), {:.1} MB to providers, {:.1} MB back, {} round trips",
            check.seconds,
            check.time_off_percent,
            megabytes(check.bytes_user_to_providers),
            megabytes(check.bytes_providers_to_user),
            check.round_trips_per_provider
        ));
            if let Some((memory, off)) = check.peak_memory_bytes.zip(check.memory_off_percent) {
                lines.push(format!(
                    "memory    {:.0} MB ({off:+.0} %)",
                    megabytes(memory)
                ));
            }
        }
        lines.join("\n")
    }
}
