//! Steps J9 and J10 at the data user: one optimiser a class asks for gradients, then its model is
//! counted on held-out rows. With a path of penalties that is done for one after the other.

use super::checks::CountedRows;
use super::outcome::{ChosenPenalty, ClassFit, Shrunk};
use super::path::Trials;
use super::progress::Progress;
use super::purchase::private_encoding;
use super::spec::{Checkpoint, Tried};
use super::user::JobRunner;
use crate::engine::label_encoding::LabelEncoding;
use crate::engine::{EvaluationAsk, GradientAsk, UserEngine};
use crate::error::{BadJob, Defect, JobError};
use crate::histogram::{Histogram, NoisyCounts};
use crate::regression_metrics::ErrorSum;
use crate::rounds::{Evaluation, HeldOut};
use heda_learn::data::Feature;
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Ask, Basis, Optimiser, PenaltyPath, Stop, TrainError};
use heda_learn::private::evaluation::combine;
use heda_learn::resident::Measure;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// How a training went. Of this run: what was before a resumption is not in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    norms: Vec<f64>,
    pub(super) shrunk: Option<Shrunk>,
}

impl Trace {
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
pub(super) struct TrainingInput<'a> {
    /// What is known of the rows.
    pub(super) basis: &'a Basis,
    /// The features that take part.
    pub(super) features: &'a [Feature],
    /// What the labels are.
    pub(super) labels_as: &'a LabelEncoding,
    /// What other columns leave of the deviation of each, as a share of it.
    pub(super) left: &'a [f64],
}

impl JobRunner<'_> {
    /// Trains every class from where `state` stands, and chooses the penalty if that is asked for.
    pub(super) fn train(
        &mut self,
        engine: &mut dyn UserEngine,
        input: TrainingInput<'_>,
        state: &mut Checkpoint,
    ) -> Result<(Vec<ClassFit>, Option<ChosenPenalty>), JobError> {
        enter_phase(engine, "train");
        let spec = Arc::clone(&self.spec);
        let Some(path) = spec.job.penalties() else {
            let mut fits = Vec::with_capacity(spec.job.positives().len());
            for (class, &positive) in spec.job.positives().iter().enumerate() {
                let course = self.train_with(engine, input.basis, (class, 0), state)?;
                fits.push(self.fit(positive, class, course, input, state)?);
            }
            return Ok((fits, None));
        };
        let mut courses = vec![Trace::default(); state.tried.len()];
        let penalties = path.values().len();
        while state.tried.len() < spec.job.positives().len() * penalties {
            let place = (state.tried.len() / penalties, state.tried.len() % penalties);
            courses.push(self.train_with(engine, input.basis, place, state)?);
            self.try_penalty(engine, path, place, input, state)?;
        }
        let trials = Trials {
            path,
            positives: spec.job.positives(),
            labels_as: input.labels_as,
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
    ) -> Result<Trace, JobError> {
        if state.optimisers.len() == class {
            let dimension = basis.scaling.width() + 1;
            let bought = state.bought.as_ref();
            let settings = self.spec.steps(self.plan.as_ref(), step, bought)?;
            let fresh = Optimiser::on(basis.clone(), settings, dimension);
            state.optimisers.push(fresh.map_err(BadJob::from)?);
        }
        let at_most = self.rounds.gradients();
        let mut course = Trace::default();
        while let Some(Ask { beta, batch }) = state.optimisers[class].ask() {
            let number = self.rounds.number_of_gradient(state.iteration);
            let Some(step) = self.next_step(state.step, number) else {
                self.observer.progress(Progress::LostAnswer(number));
                state.lost += 1;
                state.iteration += 1;
                state.optimisers[class].skip().map_err(BadJob::from)?;
                self.keep(state)?;
                continue;
            };
            let mut gradient = engine.gradient(GradientAsk {
                beta,
                class: class as u32,
                batch,
                iteration: state.iteration,
                step,
            })?;
            if let Some(persons) = state.bought.as_ref().and_then(|bought| bought.persons) {
                // A sum over persons: their number, which was bought, and not that of rows.
                gradient.rows = persons.round() as usize;
            }
            state.step = step + 1;
            state.iteration += 1;
            course.shrunk = Shrunk::with(course.shrunk, engine.shrunk());
            let optimiser = &mut state.optimisers[class];
            if let Err(error) = optimiser.tell(&gradient) {
                self.fail_later(error)?;
                break;
            }
            let norm = optimiser.gradient_norm();
            course.norms.extend(norm);
            self.observer.progress(Progress::Iteration {
                done: state.iteration,
                at_most,
                norm,
            });
            self.keep(state)?;
        }
        if self.spec.job.engine().implementation().asks_for_all() {
            let span = self.rounds.span(class as u32, step as u32);
            self.ask_for_the_rest(engine, class as u32, span, state)?;
        }
        Ok(course)
    }

    /// The number under which the next answer is asked for, after `at_least`. In a private job an
    /// answer has one number, and there is none if some provider has given it before; an exact job
    /// asks under the next one.
    fn next_step(&self, at_least: u32, private: u32) -> Option<u32> {
        match self.spec.job.privacy() {
            Some(_) => (private >= self.first_step).then_some(private),
            None => Some(at_least.max(self.first_step)),
        }
    }

    /// The model of a class whose training has ended.
    fn fit(
        &self,
        positive: u32,
        class: usize,
        course: Trace,
        input: TrainingInput<'_>,
        state: &Checkpoint,
    ) -> Result<ClassFit, JobError> {
        let optimiser = &state.optimisers[class];
        let beta = optimiser.beta();
        Ok(ClassFit {
            positive,
            beta: match self.spec.job.privacy() {
                Some(_) => {
                    let encoding = private_encoding(&self.spec.schema, state.centres());
                    encoding.map_err(BadJob::from)?.coefficients(beta)
                }
                None => beta.to_vec(),
            },
            iterations: optimiser.iterations(),
            stop: optimiser.stopped().unwrap_or(Stop::Iterations),
            settled: optimiser.settled(),
            undetermined: undetermined(optimiser, input.features),
            entangled: self.entangled(optimiser, input),
            shrunk: course.shrunk,
            norms: course.norms_or(optimiser.gradient_norm()),
            histogram: None,
            right: None,
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
        input: TrainingInput<'_>,
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
            undetermined: undetermined(optimiser, input.features),
            entangled: self.entangled(optimiser, input),
            norm: optimiser.gradient_norm(),
            histogram: None,
            errors: None,
        };
        let next = match step + 1 < path.values().len() {
            true => {
                let settings = self.spec.steps(self.plan.as_ref(), step + 1, None)?;
                let next = optimiser.with_settings(settings, self.rows);
                Some(next.map_err(BadJob::from)?)
            }
            false => None,
        };
        let began = Instant::now();
        enter_phase(engine, "evaluate");
        match self.spec.job.is_numeric() {
            true => tried.errors = Some(self.sum_errors(engine, ask, &tried.beta, state)?),
            false => tried.histogram = Some(self.count(engine, ask, &tried.beta, state)?),
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
    fn entangled(&self, optimiser: &Optimiser, input: TrainingInput<'_>) -> Vec<String> {
        let curvature = match input.labels_as {
            LabelEncoding::Number(_) => 1.0,
            LabelEncoding::Classes(_) => self.spec.job.loss().loss().curvature(),
        };
        let columns = optimiser.entangled(input.left, curvature, self.rows);
        named(&columns, input.features)
    }

    /// A gradient that cannot be used ends the training. With an engine that asks for all gradients
    /// the providers must not see that, for they may have made it: the job fails when it is over.
    fn fail_later(&mut self, error: TrainError) -> Result<(), JobError> {
        let error = BadJob::from(error);
        if !self.spec.job.engine().implementation().asks_for_all() {
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
            let step = self.rounds.number_of_gradient(state.iteration);
            if let Some(step) = self.next_step(state.step, step) {
                engine.gradient(GradientAsk {
                    beta: &beta,
                    class,
                    batch: Batch::new(number % batches, batches),
                    iteration: state.iteration,
                    step,
                })?;
                state.step = step + 1;
            }
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
        if !self.spec.job.held_out().is_some() {
            return Ok(());
        }
        enter_phase(engine, "evaluate");
        if self.spec.job.is_numeric() {
            return self.add_errors(engine, fits, state);
        }
        if self.spec.job.privacy().is_some() {
            return self.evaluate_privately(engine, fits, state);
        }
        for (class, fit) in fits.iter_mut().enumerate() {
            if state.histograms.len() == class {
                let ask = self.rounds.result(class as u32);
                let ask = ask.ok_or(Defect::Repeated("an evaluation"))?;
                let histogram = self.count(engine, ask, &fit.beta, state)?;
                state.histograms.push(histogram);
                self.keep(state)?;
            }
            fit.histogram = state.histograms.get(class).cloned();
        }
        Ok(())
    }

    /// The same for a private job, which asks for right predictions and for a table. Every answer is
    /// kept on its own: what arrived is used, whatever was lost.
    fn evaluate_privately(
        &mut self,
        engine: &mut dyn UserEngine,
        fits: &mut [ClassFit],
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        for place in state.noisy.len() as u32..self.rounds.results() {
            let ask = self.rounds.result(place);
            let ask = ask.ok_or(Defect::Repeated("an evaluation"))?;
            // The rows are in coordinates of their own.
            let beta = state.optimisers[ask.class as usize].beta().to_vec();
            let counts = match self.evaluation_step(ask, state) {
                Some(step) => Some(self.count_privately(engine, ask, &beta, step)?),
                None => None,
            };
            state.step = self.rounds.number_of_evaluation(ask.number) + 1;
            state.noisy.push(counts);
            self.keep(state)?;
        }
        let rows = self.announced(HeldOut::All);
        for (fit, answers) in fits.iter_mut().zip(state.noisy.chunks(2)) {
            let answer = |place: usize| answers.get(place)?.as_ref();
            let right = answer(0).and_then(|counts| counts.right(rows));
            let table = answer(1).map(NoisyCounts::table);
            if let Some((right, table)) = combine(right, table.as_ref(), rows) {
                fit.right = Some(right);
                fit.histogram = table.map(|table| Histogram::of_noisy(&table, &right));
            }
        }
        Ok(())
    }

    /// One of its evaluations. Counts that no rows have count as rows that nobody announced.
    fn count_privately(
        &mut self,
        engine: &mut dyn UserEngine,
        evaluation: Evaluation,
        beta: &[f64],
        step: u32,
    ) -> Result<NoisyCounts, JobError> {
        let counts = engine.noisy_counts(EvaluationAsk {
            evaluation,
            beta: &self.decided(beta),
            step,
        })?;
        let announced = self.announced(evaluation.rows);
        let found = match counts.is_possible(announced) {
            true => announced,
            false => u64::MAX,
        };
        self.counted.push(CountedRows { found, announced });
        Ok(counts)
    }

    /// Coefficients with which a score of zero is the decision.
    fn decided(&self, beta: &[f64]) -> Vec<f64> {
        let mut beta = beta.to_vec();
        beta[0] -= self.spec.job.loss().loss().threshold();
        beta
    }

    /// One evaluation by counts.
    fn count(
        &mut self,
        engine: &mut dyn UserEngine,
        evaluation: Evaluation,
        beta: &[f64],
        state: &mut Checkpoint,
    ) -> Result<Histogram, JobError> {
        let histogram = engine.histogram(EvaluationAsk {
            evaluation,
            beta: &self.decided(beta),
            step: self.exact_step(evaluation, state)?,
        })?;
        self.counted.push(CountedRows {
            found: histogram.confusion().rows(),
            announced: self.announced(evaluation.rows),
        });
        Ok(histogram)
    }

    /// The number under which an exact evaluation is asked for.
    fn exact_step(&mut self, ask: Evaluation, state: &mut Checkpoint) -> Result<u32, JobError> {
        let step = self.evaluation_step(ask, state);
        // An exact answer that was lost is asked for again, under another number.
        let step = step.ok_or(Defect::Repeated("an evaluation"))?;
        state.step = step + 1;
        Ok(step)
    }

    /// The number of an evaluation's answer, if it is not lost.
    fn evaluation_step(&mut self, ask: Evaluation, state: &mut Checkpoint) -> Option<u32> {
        let number = self.rounds.number_of_evaluation(ask.number);
        let step = self.next_step(state.step, number);
        if step.is_none() {
            self.observer.progress(Progress::LostAnswer(number));
            state.lost += 1;
        }
        step
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
            let sum = self.sum_errors(engine, ask, &fit.beta, state)?;
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
        evaluation: Evaluation,
        beta: &[f64],
        state: &mut Checkpoint,
    ) -> Result<ErrorSum, JobError> {
        let sum = engine.errors(EvaluationAsk {
            evaluation,
            beta,
            step: self.exact_step(evaluation, state)?,
        })?;
        let announced = self.announced(evaluation.rows);
        let found = match sum.is_possible(announced) {
            true => announced,
            false => u64::MAX,
        };
        self.counted.push(CountedRows { found, announced });
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
