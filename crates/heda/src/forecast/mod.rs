//! What a job will cost, reveal and be worth, before it runs: time, traffic and memory are measured
//! ([`cost`]), the accuracy of a private job is simulated ([`accuracy`]), and features are scored
//! ([`features`]).

pub mod accuracy;
mod auto;
pub mod cost;
pub mod features;
mod subject;

pub use accuracy::Expected;
pub(crate) use auto::AutoIota;
pub use cost::Took;
pub use features::ScoreReport;
pub use subject::Subject;

use accuracy::expect;
use cost::Costs;
use heda_crypto::random::Randomness;
use heda_job::job::JobSpec;
use heda_job::proposal::{Engine, Foreseen, Privacy};
use serde::Serialize;

/// What a job will cost and reveal.
#[derive(Debug, Serialize)]
pub struct Forecast {
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
    pub private: Option<PrivateForecast>,
    /// What the job then took, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Comparison>,
}

/// The promise of a private job.
#[derive(Debug, Serialize)]
pub struct PrivateForecast {
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
    pub squared_per_pass: f64,
    /// Accuracy on simulated rows, of a job that tells two classes apart.
    pub expected: Option<Expected>,
    /// How well held-out rows will tell the accuracy, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Foreseen>,
}

impl PrivateForecast {
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
            squared_per_pass: plan.cost_of_pass().squared(),
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
pub struct Comparison {
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
fn of_costs(subject: &Subject, costs: &Costs) -> Forecast {
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
    Forecast {
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
        private: PrivateForecast::of(spec, subject.providers, training as usize, held_out),
        check: None,
    }
}

impl Forecast {
    /// Compares with what the job then took.
    pub fn compare(&mut self, took: &Took) {
        let off = |found: f64, planned: f64| 100.0 * (found / planned - 1.0);
        let memory = took.peak_memory.zip(self.peak_memory_bytes);
        self.check = Some(Comparison {
            seconds: took.seconds,
            bytes_user_to_providers: took.sent,
            bytes_providers_to_user: took.received,
            round_trips_per_provider: took.round_trips / self.providers as u64,
            peak_memory_bytes: took.peak_memory,
            time_off_percent: off(took.seconds, self.seconds),
            memory_off_percent: memory.map(|(found, planned)| off(found as f64, planned as f64)),
        });
    }

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
        lines.extend(plan.private.iter().flat_map(PrivateForecast::text));
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
