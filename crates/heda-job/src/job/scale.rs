//! Between J5 and J6 at the data user: where the encrypted columns lie, and the coordinates of the
//! training that follow. See [`crate::moments`].

use super::spec::{Checkpoint, JobSpec};
use super::user::JobRunner;
use crate::class_weights::ClassWeights;
use crate::description::Job;
use crate::engine::label_encoding::LabelEncoding;
use crate::engine::{Columns, Joined, Terms, row_bits};
use crate::error::{BadJob, JobError};
use crate::message::{FromProvider, Message, Sums};
use crate::moments::{self, Moments, MomentsError, OfLabels, Scale};
use crate::parallel::{Party, ask_all};
use crate::proposal::ClassWeight;
use heda_learn::data::Feature;
use heda_learn::optimise::Basis;
use heda_learn::scaling::{Centre, Scaling, Window};
use heda_learn::target::TargetScale;
use std::sync::Arc;

/// The coordinates of a job's rows.
pub(super) struct Scaled {
    /// From the values that the engine works on to those of the schema.
    pub(super) windows: Scaling,
    /// Numbers that were asked for.
    pub(super) asked: u64,
    /// How many of these are about labels.
    pub(super) of_labels: u64,
    /// Encrypted features that do not vary.
    pub(super) constant: Vec<String>,
    /// What the labels are.
    pub(super) labels_as: LabelEncoding,
    /// Of each column the share of its deviation that others leave unexplained; 1 where that is not
    /// known.
    pub(super) left: Vec<f64>,
    /// Where the columns lie that the engine works on; published ones are not known yet.
    centres: Vec<Centre>,
}

impl Scaled {
    /// Values in [0, 1] as the schema scales them, whatever they are.
    fn plain(width: usize) -> Self {
        Self {
            windows: Scaling::none(width),
            asked: 0,
            of_labels: 0,
            constant: Vec::new(),
            labels_as: LabelEncoding::default(),
            left: vec![1.0; width],
            centres: vec![Centre::NONE; width],
        }
    }

    /// What the optimiser knows of the rows. Published columns are measured as they were
    /// published.
    pub(super) fn basis(
        &self,
        spec: &JobSpec,
        joined: &[Joined],
        columns: &Columns,
    ) -> Result<Basis, JobError> {
        if !spec.job.standardises() {
            return Ok(Basis::plain(columns.width));
        }
        let mut centres = self.centres.clone();
        let one = 2f64.powi(spec.job.resolution().value_bits() as i32);
        for (place, &column) in columns.open.iter().enumerate() {
            let rows = joined.iter();
            let rows = rows.flat_map(|party| party.open.chunks_exact(columns.open.len()));
            centres[column] = measured(rows.map(|row| f64::from(row[place]) / one));
        }
        let rows = joined.iter().map(|party| party.part.rows);
        let row_bits = row_bits(spec.job.batches() as usize, rows);
        let resolution = spec.job.resolution().of_rows(row_bits);
        let usual = spec.job.engine().implementation().rounding(resolution);
        Ok(Basis {
            scaling: Scaling::new(centres),
            noise: self.labels_as.rounding(resolution, usual),
        })
    }
}

fn measured(values: impl Iterator<Item = f64>) -> Centre {
    let (count, sum, squares) = values.fold((0.0, 0.0, 0.0), |(count, sum, squares), x| {
        (count + 1.0, sum + x, squares + x * x)
    });
    match count > 0.0 {
        true => Centre::of_moments(sum / count, squares / count),
        false => Centre::NONE,
    }
}

fn fault(error: MomentsError) -> JobError {
    BadJob::from(error).into()
}

impl JobRunner<'_> {
    /// Learns where the encrypted columns lie, from the checkpoint, the schema or everybody's
    /// sums, and tells the providers the windows.
    pub(super) fn scale(
        &mut self,
        joined: &mut [Joined],
        terms: &Terms<'_>,
        state: &mut Checkpoint,
    ) -> Result<Scaled, JobError> {
        let Terms {
            proposal,
            features,
            columns,
            ..
        } = *terms;
        let job = &proposal.job;
        if !self.spec.job.standardises() {
            return Ok(Scaled {
                labels_as: LabelEncoding::Classes(given(job)),
                ..Scaled::plain(columns.width)
            });
        }
        let schema = &Arc::clone(&self.spec.schema);
        let encrypted = moments::encrypted(features, columns);
        let labels = OfLabels::asked(job, schema.label().classes().len());
        let numbers = moments::numbers(&encrypted, labels) as u64;
        let stated = moments::by_schema(schema, &encrypted, labels);
        let (moments, asked) = match (stated, state.moments.clone()) {
            (Some(moments), _) => (moments, 0),
            (None, Some(moments)) => (moments, numbers),
            (None, None) => (ask(joined, &encrypted, labels)?, numbers),
        };
        if moments.centres.len() != columns.hidden.len() {
            let (expected, found) = (columns.hidden.len(), moments.centres.len());
            return Err(fault(MomentsError::Centres { expected, found }));
        }
        state.moments = Some(moments.clone());
        self.keep(state)?;
        let labels_as = labels_as(job, &moments).map_err(fault)?;
        let Moments { centres, left, .. } = moments;
        let windows = moments::windows(&encrypted, &centres);
        let told = Scale::Told {
            windows: windows.clone(),
            label: match labels_as {
                LabelEncoding::Number(scale) => Some(scale),
                LabelEncoding::Classes(_) => None,
            },
            weights: match &labels_as {
                LabelEncoding::Classes(class_weights) => class_weights.pairs(),
                LabelEncoding::Number(_) => Vec::new(),
            },
        };
        ask_all(joined, |party| told.send(party.channel()))?;
        let windows = moments::by_column(&encrypted, &windows, columns.width).map_err(fault)?;
        Ok(Scaled {
            asked,
            of_labels: match asked {
                0 => 0,
                _ => numbers - moments::numbers(&encrypted, OfLabels::Nothing) as u64,
            },
            labels_as,
            constant: match asked {
                0 => Vec::new(),
                _ => moments::constant(&encrypted, &centres),
            },
            ..placed(&windows, &columns.hidden, &centres, &left)
        })
    }
}

/// How labels are read where that was asked.
fn labels_as(job: &Job, moments: &Moments) -> Result<LabelEncoding, MomentsError> {
    if job.is_numeric() {
        let scale = moments.number.and_then(TargetScale::around);
        return scale.map(LabelEncoding::Number).ok_or(MomentsError::Label);
    }
    Ok(LabelEncoding::Classes(match job.class_weight() {
        Some(ClassWeight::Balanced) => ClassWeights::balanced(&moments.counts, job.positives())?,
        _ => given(job),
    }))
}

/// The weights that a job gives.
pub(super) fn given(job: &Job) -> ClassWeights {
    match job.class_weight() {
        Some(ClassWeight::Given(weights)) => ClassWeights::ByClass(weights.clone()),
        _ => ClassWeights::Alike,
    }
}

fn ask(
    joined: &mut [Joined],
    encrypted: &[Feature],
    labels: OfLabels,
) -> Result<Moments, JobError> {
    let rows = joined.iter().map(|party| party.part.rows).sum();
    let fraction_bits = moments::fraction_bits(rows).map_err(fault)?;
    let question = Scale::Ask { fraction_bits };
    let length = moments::sum_bytes(encrypted, labels);
    let sums = ask_all(joined, |party| {
        let channel = party.channel();
        question.send(channel)?;
        Ok(Sums::receive(channel, length)?.0)
    })?;
    moments::combine(&sums, encrypted, labels, fraction_bits, rows).map_err(fault)
}

fn placed(windows: &[Window], hidden: &[usize], centres: &[Centre], left: &[f64]) -> Scaled {
    let mut scaled = Scaled::plain(windows.len());
    for (&column, left) in hidden.iter().zip(left) {
        scaled.left[column] = *left;
    }
    for (&column, centre) in hidden.iter().zip(centres) {
        scaled.centres[column] = windows[column].moved(*centre);
    }
    let outside = windows.iter().map(|window| window.centre());
    scaled.windows = Scaling::new(outside.collect());
    scaled
}
