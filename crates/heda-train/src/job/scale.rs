//! Between J5 and J6 at the data user: where the encrypted columns lie, and the coordinates of the
//! training that follow. See [`crate::moments`].

use super::spec::{Checkpoint, JobSpec};
use super::user::Running;
use crate::engine::{Columns, Joined};
use crate::error::{BadJob, JobError};
use crate::message::{Message, Sums};
use crate::moments::{self, MomentsError, Scale};
use crate::parallel::{Party, ask_all};
use heda_learn::data::Feature;
use heda_learn::optimise::Basis;
use heda_learn::scaling::{Centre, Scaling, Window};

/// The coordinates of a job's rows.
pub(super) struct Scaled {
    /// From the values that the engine works on to those of the schema.
    pub(super) windows: Scaling,
    /// Numbers that were asked for.
    pub(super) asked: u64,
    /// Encrypted features that do not vary.
    pub(super) constant: Vec<String>,
    /// Where the columns lie that the engine works on; published ones are not known yet.
    centres: Vec<Centre>,
}

impl Scaled {
    /// Values in [0, 1] as the schema scales them, whatever they are.
    fn plain(width: usize) -> Self {
        Self {
            windows: Scaling::none(width),
            asked: 0,
            constant: Vec::new(),
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
        if !spec.standardises() {
            return Ok(Basis::plain(columns.width));
        }
        let mut centres = self.centres.clone();
        let one = 2f64.powi(spec.resolution.value_bits() as i32);
        for (place, &column) in columns.open.iter().enumerate() {
            let rows = joined.iter();
            let rows = rows.flat_map(|party| party.open.chunks_exact(columns.open.len()));
            centres[column] = measured(rows.map(|row| f64::from(row[place]) / one));
        }
        Ok(Basis {
            scaling: Scaling::new(centres),
            noise: spec.engine.implementation()?.rounding(spec.resolution),
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

impl Running<'_> {
    /// Learns where the encrypted columns lie, from the checkpoint, the schema or everybody's
    /// sums, and tells the providers the windows.
    pub(super) fn scale(
        &mut self,
        joined: &mut [Joined],
        features: &[Feature],
        columns: &Columns,
        state: &mut Checkpoint,
    ) -> Result<Scaled, JobError> {
        if !self.spec.standardises() {
            return Ok(Scaled::plain(columns.width));
        }
        let encrypted = moments::encrypted(features, columns);
        let numbers = moments::numbers(&encrypted) as u64;
        let stated = moments::by_schema(&self.spec.schema, &encrypted);
        let (centres, asked) = match (stated, state.centres.clone()) {
            (Some(centres), _) => (centres, 0),
            (None, Some(centres)) => (centres, numbers),
            (None, None) => (ask(joined, &encrypted)?, numbers),
        };
        if centres.len() != columns.hidden.len() {
            let (expected, found) = (columns.hidden.len(), centres.len());
            return Err(fault(MomentsError::Centres { expected, found }));
        }
        state.centres = Some(centres.clone());
        self.keep(state)?;
        let windows = moments::windows(&encrypted, &centres);
        let told = Scale::Told {
            windows: windows.clone(),
        };
        ask_all(joined, |party| Ok(told.send(party.channel())?))?;
        let windows = moments::by_column(&encrypted, &windows, columns.width).map_err(fault)?;
        Ok(Scaled {
            asked,
            constant: match asked {
                0 => Vec::new(),
                _ => moments::constant(&encrypted, &centres),
            },
            ..placed(&windows, &columns.hidden, &centres)
        })
    }
}

fn ask(joined: &mut [Joined], encrypted: &[Feature]) -> Result<Vec<Centre>, JobError> {
    let rows = joined.iter().map(|party| party.part.rows).sum();
    let fraction_bits = moments::fraction_bits(rows).map_err(fault)?;
    let question = Scale::Ask { fraction_bits };
    let length = moments::sum_bytes(encrypted);
    let sums = ask_all(joined, |party| {
        let channel = party.channel();
        question.send(channel)?;
        Ok(Sums::receive(channel, length)?.0)
    })?;
    moments::combine(&sums, encrypted, fraction_bits, rows).map_err(fault)
}

fn placed(windows: &[Window], hidden: &[usize], centres: &[Centre]) -> Scaled {
    let mut scaled = Scaled::plain(windows.len());
    for (&column, centre) in hidden.iter().zip(centres) {
        scaled.centres[column] = windows[column].moved(*centre);
    }
    let outside = windows.iter().map(|window| window.centre());
    scaled.windows = Scaling::new(outside.collect());
    scaled
}
