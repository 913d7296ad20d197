//! What training leaves: the model and what is worth telling about it. Every model is assembled
//! here, wherever the providers were.

use crate::error::Error;
use crate::files::{PRIVATE, write_with_mode};
use crate::report;
use crate::summary::{About, Summary, came_to};
use heda_job::guard::LedgerHead;
use heda_job::job::Outcome;
use heda_learn::loss::LossKind;
use heda_learn::model::{Model, Provenance};
use heda_learn::schema::Schema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a job leaves in its folder.
pub(crate) const MODEL_FILE: &str = "model.json";
/// What a job leaves in its folder.
pub(crate) const REPORT_FILE: &str = "report.html";

/// Why a model has no guarantee although its sums carried noise.
const BOUNDS_FROM_ROWS: &str = "bounds were read from the rows, so the model holds values of rows";

/// A finished job.
#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    /// What it is worth telling.
    #[serde(flatten)]
    pub summary: Summary,
    /// Providers that did not stay to the end.
    pub providers_lost: Vec<String>,
    /// How far the providers' ledgers had come, by name: by this an operator can find out later
    /// whether a ledger was lost or replaced since.
    pub ledgers: BTreeMap<String, LedgerHead>,
    /// What was trained.
    #[serde(skip)]
    pub model: Model,
}

impl Trained {
    pub(crate) fn new(
        about: About<'_>,
        loss: LossKind,
        outcome: &Outcome,
        providers_lost: Vec<String>,
    ) -> Result<Self, Error> {
        let schema = about.schema;
        let summary = Summary::new(about, outcome);
        let model = model(&summary, schema, loss, outcome, &providers_lost)?;
        Ok(Self {
            summary,
            providers_lost,
            ledgers: BTreeMap::new(),
            model,
        })
    }

    /// Notes that bounds and levels were read from the rows: model and summary then promise nothing.
    pub fn note_bounds_from_rows(&mut self) {
        self.summary.note_bounds_from_rows();
        self.model.withdraw_guarantee(BOUNDS_FROM_ROWS);
    }

    /// Writes `model.json` and `report.html` into a folder, for its owner only. `command` is what
    /// was typed, for who wants to repeat it.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&mut self, folder: &Path, command: &str) -> Result<(), Error> {
        self.write_with_mode(folder, command, PRIVATE)
    }

    /// The same with these permissions.
    pub(crate) fn write_with_mode(
        &mut self,
        folder: &Path,
        command: &str,
        mode: u32,
    ) -> Result<(), Error> {
        let path = folder.join(MODEL_FILE);
        write_with_mode(&path, self.model.to_json().as_bytes(), mode)?;
        self.summary.model_path = Some(path);
        let path = folder.join(REPORT_FILE);
        let page = report::page(&self.summary, &self.model, command);
        write_with_mode(&path, page.as_bytes(), mode)?;
        self.summary.report_path = Some(path);
        Ok(())
    }

    /// The summary in words.
    pub fn text(&self) -> String {
        let mut text = self.summary.text();
        if !self.providers_lost.is_empty() {
            let lost = self.providers_lost.join(", ");
            text += &format!("\n{}", report::went_on_without(&lost));
        }
        text
    }
}

/// The model over the whole schema; a feature that was dropped has no weight.
fn model(
    summary: &Summary,
    schema: &Schema,
    loss: LossKind,
    outcome: &Outcome,
    lost: &[String],
) -> Result<Model, Error> {
    let features = schema.features();
    let betas = outcome.fits.iter();
    let betas: Vec<Vec<f64>> = betas
        .map(|fit| outcome.full_beta(&features, &fit.beta))
        .map(|beta| match schema.label().number() {
            Some(number) => number.to_units(&beta),
            None => beta,
        })
        .collect();
    let mut notes = BTreeMap::from([
        ("seeded".to_owned(), summary.seeded.to_string()),
        ("penalty".to_owned(), summary.penalty.clone()),
        ("end".to_owned(), summary.stopped.join(" ")),
    ]);
    if let Some(choice) = &summary.chosen_penalty {
        let tried = choice.tried.iter();
        let tried = tried.map(|tried| format!("C = {}: {}", tried.c, came_to(tried)));
        let tried: Vec<String> = tried.collect();
        notes.insert("penalties_tried".to_owned(), tried.join("; "));
    }
    if outcome.lost > 0 {
        notes.insert("lost_answers".to_owned(), outcome.lost.to_string());
    }
    if !lost.is_empty() {
        notes.insert(report::PROVIDERS_LOST.to_owned(), lost.join(", "));
    }
    let provenance = Provenance {
        dataset: summary.dataset.clone(),
        engine: summary.engine.to_string(),
        rows: summary.rows as u64,
        providers: summary.providers as u32,
        iterations: summary.iterations,
        privacy: outcome.guarantee(schema.width()),
        features: summary.feature_uses(),
        versions: [("heda".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
        notes,
    };
    let model = Model::new(loss, schema.clone(), &betas, provenance);
    let model = model.and_then(|model| match &outcome.reach {
        Some(reach) => model.with_reach(reach.clone()),
        None => Ok(model),
    });
    model.map_err(Error::bug)
}
