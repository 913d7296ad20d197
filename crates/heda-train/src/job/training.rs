//! Steps J9 and J10 at the data user: one optimiser a class asks for gradients, then its model is
//! counted on held-out rows.

use super::bought::private_encoding;
use super::outcome::{ClassFit, Shrunk};
use super::spec::Checkpoint;
use super::user::Running;
use crate::engine::{GradientAsk, UserEngine};
use crate::error::{BadJob, JobError};
use heda_learn::data::Feature;
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Ask, Basis, OptimiseError, Optimiser, Settings, Stop};
use heda_learn::resident::Measure;

impl Running<'_> {
    /// Trains every class from where `state` stands.
    pub(super) fn train(
        &mut self,
        engine: &mut dyn UserEngine,
        basis: &Basis,
        features: &[Feature],
        state: &mut Checkpoint,
    ) -> Result<Vec<ClassFit>, JobError> {
        enter_phase(engine, "train");
        let spec = self.spec;
        let plan = spec.plan(basis.scaling.width())?;
        let settings = spec.steps(basis.scaling.width())?;
        let classes = spec.positives.len() as u32;
        let at_most = settings.max_iterations.saturating_mul(classes);
        let mut fits = Vec::with_capacity(spec.positives.len());
        for (class, &positive) in spec.positives.iter().enumerate() {
            if state.optimisers.len() == class {
                let dimension = basis.scaling.width() + 1;
                let fresh = Optimiser::on(basis.clone(), settings.clone(), dimension);
                let fresh = fresh.map_err(BadJob::from)?;
                state.optimisers.push(fresh);
            }
            let mut norms = Vec::new();
            let mut shrunk = None;
            while let Some(Ask { beta, batch }) = state.optimisers[class].ask() {
                let gradient = engine.gradient(GradientAsk {
                    beta,
                    class: class as u32,
                    batch,
                    iteration: state.iteration,
                })?;
                state.iteration += 1;
                shrunk = Shrunk::with(shrunk, engine.shrunk());
                let optimiser = &mut state.optimisers[class];
                if let Err(error) = optimiser.tell(&gradient) {
                    self.fail_later(error)?;
                    break;
                }
                let norm = optimiser.gradient_norm();
                norms.extend(norm);
                self.observer.iteration(state.iteration, at_most, norm);
                self.keep(state)?;
            }
            if spec.engine.implementation()?.asks_for_all() {
                self.ask_for_the_rest(engine, &settings, class as u32, state)?;
            }
            let optimiser = &state.optimisers[class];
            // A training that had ended before this session is told like any other.
            if norms.is_empty() {
                norms.extend(optimiser.gradient_norm());
            }
            let beta = optimiser.beta();
            fits.push(ClassFit {
                positive,
                beta: match plan {
                    Some(_) => {
                        let encoding = private_encoding(&spec.schema, state.bought.as_deref());
                        encoding.map_err(BadJob::from)?.coefficients(beta)
                    }
                    None => beta.to_vec(),
                },
                iterations: optimiser.iterations(),
                stop: optimiser.stopped().unwrap_or(Stop::Iterations),
                settled: optimiser.settled(),
                undetermined: undetermined(optimiser, features),
                norms,
                shrunk,
                histogram: None,
                errors: None,
            });
        }
        Ok(fits)
    }

    /// A gradient that cannot be used ends the training. With an engine that asks for all gradients
    /// the providers must not see that, for they may have made it: the job fails when it is over.
    fn fail_later(&mut self, error: OptimiseError) -> Result<(), JobError> {
        let error = BadJob::from(error);
        if !self.spec.engine.implementation()?.asks_for_all() {
            return Err(error.into());
        }
        self.failed.get_or_insert(error);
        Ok(())
    }

    /// Asks on where the training ended, for nothing, until the class has had all its gradients. The
    /// batches go on as they would have.
    fn ask_for_the_rest(
        &mut self,
        engine: &mut dyn UserEngine,
        settings: &Settings,
        class: u32,
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        let begin = settings.max_iterations.saturating_mul(class);
        let end = settings.max_iterations.saturating_mul(class + 1);
        let batches = settings.method.batches();
        let beta = state.optimisers[class as usize].beta().to_vec();
        while state.iteration < end {
            let number = state.iteration.saturating_sub(begin) as usize;
            engine.gradient(GradientAsk {
                beta: &beta,
                class,
                batch: Batch::new(number % batches, batches),
                iteration: state.iteration,
            })?;
            state.iteration += 1;
            self.keep(state)?;
        }
        Ok(())
    }

    /// Counts the held-out rows for every model that `state` has no counts of. Returns how many
    /// rows each new count has.
    pub(super) fn evaluate(
        &mut self,
        engine: &mut dyn UserEngine,
        fits: &mut [ClassFit],
        state: &mut Checkpoint,
    ) -> Result<Vec<u64>, JobError> {
        let mut counted = Vec::new();
        if self.spec.holdout_permille == 0 {
            return Ok(counted);
        }
        enter_phase(engine, "evaluate");
        if self.spec.is_numeric() {
            return self.add_errors(engine, fits, state);
        }
        for (class, fit) in fits.iter_mut().enumerate() {
            if state.histograms.len() == class {
                // The rows of a private job are in its own coordinates.
                let mut beta = match self.spec.privacy {
                    Some(_) => state.optimisers[class].beta().to_vec(),
                    None => fit.beta.clone(),
                };
                beta[0] -= self.spec.loss.loss().threshold();
                let histogram = engine.histogram(class as u32, &beta)?;
                counted.push(histogram.confusion().rows());
                state.histograms.push(histogram);
                self.keep(state)?;
            }
            fit.histogram = state.histograms.get(class).cloned();
        }
        Ok(counted)
    }
}

impl Running<'_> {
    /// The same for a numeric label: its errors by every measure. Sums that no rows have count as
    /// rows that nobody announced.
    fn add_errors(
        &mut self,
        engine: &mut dyn UserEngine,
        fits: &[ClassFit],
        state: &mut Checkpoint,
    ) -> Result<Vec<u64>, JobError> {
        let mut counted = Vec::new();
        for measure in state.errors.len()..Measure::ALL.len() {
            let Some(fit) = fits.first() else {
                break;
            };
            let sum = engine.errors(measure as u32, &fit.beta)?;
            let rows = self.held_out as u64;
            counted.push(if sum.is_possible(rows) {
                rows
            } else {
                u64::MAX
            });
            state.errors.push(sum);
            self.keep(state)?;
        }
        Ok(counted)
    }
}

/// Features of which every coefficient is within rounding.
fn undetermined(optimiser: &Optimiser, features: &[Feature]) -> Vec<String> {
    let columns = optimiser.undetermined().unwrap_or_default();
    let open = |feature: &&Feature| feature.columns.clone().all(|c| columns.contains(&c));
    let open = features.iter().filter(open);
    open.map(|feature| feature.name.clone()).collect()
}

fn enter_phase(engine: &mut dyn UserEngine, phase: &'static str) {
    let channels = engine.channels().into_iter();
    channels.for_each(|channel| channel.enter_phase(phase));
}
