//! Steps J9 and J10 at the data user: one optimiser a class asks for gradients, then its model is
//! counted on held-out rows. With a path of penalties that is done for one after the other.

use super::bought::private_encoding;
use super::checks::Counted;
use super::outcome::{ChosenPenalty, ClassFit, Shrunk};
use super::path::Trials;
use super::spec::{Checkpoint, Tried};
use super::user::Running;
use crate::engine::reading::Reading;
use crate::engine::{GradientAsk, UserEngine};
use crate::error::{BadJob, Defect, JobError};
use crate::errors::ErrorSum;
use crate::histogram::Histogram;
use crate::rounds::{Evaluation, HeldOut};
use heda_learn::data::Feature;
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Ask, Basis, OptimiseError, Optimiser, PenaltyPath, Stop};
use heda_learn::resident::Measure;
use std::ops::Range;
use std::time::Instant;

/// How a training went. Of this run: what was before a resumption is not in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Course {
    norms: Vec<f64>,
    pub(super) shrunk: Option<Shrunk>,
}

impl Course {
    /// Norms of the gradients; of a training that had ended before this session the last one.
    pub(super) fn norms_or(self, last: Option<f64>) -> Vec<f64> {
        match self.norms.is_empty() {
            true => last.into_iter().collect(),
            false => self.norms,
        }
    }
}

/// What trainings have in common.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    /// What is known of the rows.
    pub(super) basis: &'a Basis,
    /// The features that take part.
    pub(super) features: &'a [Feature],
    /// What the labels are.
    pub(super) reading: &'a Reading,
    /// What other columns leave of the deviation of each, as a share of it.
    pub(super) left: &'a [f64],
}

impl Running<'_> {
    /// Trains every class from where `state` stands, and chooses the penalty if that is asked for.
    pub(super) fn train(
        &mut self,
        engine: &mut dyn UserEngine,
        ground: Ground<'_>,
        state: &mut Checkpoint,
    ) -> Result<(Vec<ClassFit>, Option<ChosenPenalty>), JobError> {
        enter_phase(engine, "train");
        let spec = self.spec;
        let Some(path) = &spec.path else {
            let mut fits = Vec::with_capacity(spec.positives.len());
            for (class, &positive) in spec.positives.iter().enumerate() {
                let course = self.train_with(engine, ground.basis, (class, 0), state)?;
                fits.push(self.fit(positive, class, course, ground, state)?);
            }
            return Ok((fits, None));
        };
        let mut courses = vec![Course::default(); state.tried.len()];
        let penalties = path.values().len();
        while state.tried.len() < spec.positives.len() * penalties {
            let place = (state.tried.len() / penalties, state.tried.len() % penalties);
            courses.push(self.train_with(engine, ground.basis, place, state)?);
            self.try_penalty(engine, path, place, ground, state)?;
        }
        let trials = Trials {
            path,
            positives: &spec.positives,
            reading: ground.reading,
            tried: &state.tried,
            rows: self.announced(HeldOut::Choosing),
        };
        let chosen = trials.choose();
        Ok((trials.fits(chosen.chosen, &courses), Some(chosen)))
    }

    /// Trains one class with one of its penalties, with all gradients that these have.
    fn train_with(
        &mut self,
        engine: &mut dyn UserEngine,
        basis: &Basis,
        (class, step): (usize, usize),
        state: &mut Checkpoint,
    ) -> Result<Course, JobError> {
        if state.optimisers.len() == class {
            let dimension = basis.scaling.width() + 1;
            let settings = self.spec.steps_of(basis.scaling.width(), step)?;
            let fresh = Optimiser::on(basis.clone(), settings, dimension);
            state.optimisers.push(fresh.map_err(BadJob::from)?);
        }
        let at_most = self.rounds.gradients();
        let mut course = Course::default();
        while let Some(Ask { beta, batch }) = state.optimisers[class].ask() {
            let gradient = engine.gradient(GradientAsk {
                beta,
                class: class as u32,
                batch,
                iteration: state.iteration,
            })?;
            state.iteration += 1;
            course.shrunk = Shrunk::with(course.shrunk, engine.shrunk());
            let optimiser = &mut state.optimisers[class];
            if let Err(error) = optimiser.tell(&gradient) {
                self.fail_later(error)?;
                break;
            }
            let norm = optimiser.gradient_norm();
            course.norms.extend(norm);
            self.observer.iteration(state.iteration, at_most, norm);
            self.keep(state)?;
        }
        if self.spec.engine.implementation()?.asks_for_all() {
            let span = self.rounds.span(class as u32, step as u32);
            self.ask_for_the_rest(engine, class as u32, span, state)?;
        }
        Ok(course)
    }

    /// The model of a class whose training has ended.
    fn fit(
        &self,
        positive: u32,
        class: usize,
        course: Course,
        ground: Ground<'_>,
        state: &Checkpoint,
    ) -> Result<ClassFit, JobError> {
        let optimiser = &state.optimisers[class];
        let beta = optimiser.beta();
        Ok(ClassFit {
            positive,
            beta: match self.spec.privacy {
                Some(_) => {
                    let encoding = private_encoding(&self.spec.schema, state.bought.as_deref());
                    encoding.map_err(BadJob::from)?.coefficients(beta)
                }
                None => beta.to_vec(),
            },
            iterations: optimiser.iterations(),
            stop: optimiser.stopped().unwrap_or(Stop::Iterations),
            settled: optimiser.settled(),
            undetermined: undetermined(optimiser, ground.features),
            entangled: self.entangled(optimiser, ground),
            shrunk: course.shrunk,
            norms: course.norms_or(optimiser.gradient_norm()),
            histogram: None,
            errors: None,
        })
    }

    /// Steps P2 and P3: counts the model of a penalty on the rows that choose, and begins the next
    /// one where it ended.
    fn try_penalty(
        &mut self,
        engine: &mut dyn UserEngine,
        path: &PenaltyPath,
        (class, step): (usize, usize),
        ground: Ground<'_>,
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        let ask = self.rounds.trial(class as u32, step as u32);
        let ask = ask.ok_or(Defect::Repeated("a penalty"))?;
        let optimiser = &state.optimisers[class];
        let mut tried = Tried {
            beta: optimiser.beta().to_vec(),
            iterations: optimiser.iterations(),
            stop: optimiser.stopped().unwrap_or(Stop::Iterations),
            settled: optimiser.settled(),
            undetermined: undetermined(optimiser, ground.features),
            entangled: self.entangled(optimiser, ground),
            norm: optimiser.gradient_norm(),
            histogram: None,
            errors: None,
        };
        let next = match step + 1 < path.values().len() {
            true => {
                let width = optimiser.basis().scaling.width();
                let settings = self.spec.steps_of(width, step + 1)?;
                let next = optimiser.with_settings(settings, self.rows);
                Some(next.map_err(BadJob::from)?)
            }
            false => None,
        };
        let began = Instant::now();
        enter_phase(engine, "evaluate");
        match self.spec.is_numeric() {
            true => tried.errors = Some(self.sum_errors(engine, ask, &tried.beta)?),
            false => tried.histogram = Some(self.count(engine, ask, &tried.beta)?),
        }
        enter_phase(engine, "train");
        self.counting += began.elapsed();
        state.tried.push(tried);
        if let Some(next) = next {
            state.optimisers[class] = next;
        }
        self.keep(state)
    }

    /// Features that nearly follow from others, with coefficients that rounding may have moved far.
    fn entangled(&self, optimiser: &Optimiser, ground: Ground<'_>) -> Vec<String> {
        let curvature = match ground.reading {
            Reading::Number(_) => 1.0,
            Reading::Classes(_) => self.spec.loss.loss().curvature(),
        };
        let columns = optimiser.entangled(ground.left, curvature, self.rows);
        named(&columns, ground.features)
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

    /// Asks on where the training ended, for nothing, until the class has had all gradients of its
    /// penalty. The batches go on as they would have.
    fn ask_for_the_rest(
        &mut self,
        engine: &mut dyn UserEngine,
        class: u32,
        span: Range<u32>,
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        let optimiser = &state.optimisers[class as usize];
        let batches = optimiser.settings().method.batches();
        let beta = optimiser.beta().to_vec();
        while state.iteration < span.end {
            let number = state.iteration.saturating_sub(span.start) as usize;
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

    /// Counts the held-out rows for every model that `state` has no counts of.
    pub(super) fn evaluate(
        &mut self,
        engine: &mut dyn UserEngine,
        fits: &mut [ClassFit],
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        if self.spec.holdout_permille == 0 {
            return Ok(());
        }
        enter_phase(engine, "evaluate");
        if self.spec.is_numeric() {
            return self.add_errors(engine, fits, state);
        }
        for (class, fit) in fits.iter_mut().enumerate() {
            if state.histograms.len() == class {
                // The rows of a private job are in its own coordinates.
                let beta = match self.spec.privacy {
                    Some(_) => state.optimisers[class].beta().to_vec(),
                    None => fit.beta.clone(),
                };
                let ask = self.rounds.result(class as u32);
                let ask = ask.ok_or(Defect::Repeated("an evaluation"))?;
                let histogram = self.count(engine, ask, &beta)?;
                state.histograms.push(histogram);
                self.keep(state)?;
            }
            fit.histogram = state.histograms.get(class).cloned();
        }
        Ok(())
    }

    /// One evaluation by counts.
    fn count(
        &mut self,
        engine: &mut dyn UserEngine,
        ask: Evaluation,
        beta: &[f64],
    ) -> Result<Histogram, JobError> {
        let mut beta = beta.to_vec();
        beta[0] -= self.spec.loss.loss().threshold();
        let histogram = engine.histogram(ask, &beta)?;
        self.counted.push(Counted {
            found: histogram.confusion().rows(),
            announced: self.announced(ask.rows),
        });
        Ok(histogram)
    }

    /// The same for a numeric label: its errors by every measure.
    fn add_errors(
        &mut self,
        engine: &mut dyn UserEngine,
        fits: &[ClassFit],
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        for measure in state.errors.len()..Measure::ALL.len() {
            let Some(fit) = fits.first() else {
                break;
            };
            let ask = self.rounds.result(measure as u32);
            let ask = ask.ok_or(Defect::Repeated("an evaluation"))?;
            let sum = self.sum_errors(engine, ask, &fit.beta)?;
            state.errors.push(sum);
            self.keep(state)?;
        }
        Ok(())
    }

    /// One evaluation by a measure of errors. Sums that no rows have count as rows that nobody
    /// announced.
    fn sum_errors(
        &mut self,
        engine: &mut dyn UserEngine,
        ask: Evaluation,
        beta: &[f64],
    ) -> Result<ErrorSum, JobError> {
        let sum = engine.errors(ask, beta)?;
        let announced = self.announced(ask.rows);
        let found = match sum.is_possible(announced) {
            true => announced,
            false => u64::MAX,
        };
        self.counted.push(Counted { found, announced });
        Ok(sum)
    }

    /// Held-out rows of all providers, by what they announced.
    pub(super) fn announced(&self, which: HeldOut) -> u64 {
        let parts = self.held_out.iter();
        parts.map(|rows| which.of(*rows).len() as u64).sum()
    }
}

/// Features of which every coefficient is within rounding.
fn undetermined(optimiser: &Optimiser, features: &[Feature]) -> Vec<String> {
    let columns = optimiser.undetermined().unwrap_or_default();
    named(&columns, features)
}

/// Features all of whose columns are among these.
fn named(columns: &[usize], features: &[Feature]) -> Vec<String> {
    let whole = |feature: &&Feature| feature.columns.clone().all(|c| columns.contains(&c));
    let whole = features.iter().filter(whole);
    whole.map(|feature| feature.name.clone()).collect()
}

fn enter_phase(engine: &mut dyn UserEngine, phase: &'static str) {
    let channels = engine.channels().into_iter();
    channels.for_each(|channel| channel.enter_phase(phase));
}
