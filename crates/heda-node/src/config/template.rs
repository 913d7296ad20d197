//! Files that people would otherwise write by hand, complete and with comments.

use super::invitation::{Answer, Invitation};
use super::privacy::PrivacyConfig;
use super::values::Name;
use super::{JobConfig, LimitsConfig, ProviderConfig};
use crate::guard::ledger::PrivateCap;
use crate::identity::fingerprint::PeerFingerprint;
use heda_dp::epsilon::Epsilon;
use heda_learn::loss::LossKind;
use heda_learn::reference::FileKeys;
use heda_learn::schema::Schema;
use heda_learn::table::CsvFormat;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::net::SocketAddr;
use std::path::PathBuf;

/// No batch is about fewer rows, where a provider has so many.
const ROWS_PER_BATCH: u64 = 50;
/// Jobs of the invited size on one day.
const JOBS_PER_DAY: u64 = 10;
/// Numbers that a job may learn for each unknown value.
const REVEALED: f64 = 0.5;

/// What a provider decides before it answers an invitation.
#[derive(Debug, Clone)]
pub struct ProviderSetup<'a> {
    /// Who asks, for what.
    pub invitation: &'a Invitation,
    /// The schema of the invitation.
    pub schema: &'a Schema,
    /// The rows.
    pub data: PathBuf,
    /// How many of them fit the schema.
    pub rows: u64,
    /// How they are written.
    pub csv: CsvFormat,
    /// Where to listen.
    pub listen: SocketAddr,
    /// What may be published in all; nothing without it.
    pub epsilon_total: Option<Epsilon>,
    /// What private jobs may cost in all; sums without a guarantee are served without it.
    pub private: Option<PrivateCap>,
    /// Other providers, by their answers.
    pub known: &'a [Answer],
}

/// ε that private jobs may reach in all, unless an operator says more: no invitation decides it.
pub const EPSILON_CEILING: f64 = 2.0;

/// Why an invitation does not decide what private jobs may cost.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "the invitation asks for epsilon {asked}, and no more than {EPSILON_CEILING} is taken from an \
     invitation"
)]
pub struct TooMuchAsked {
    /// ε of the invited job.
    pub asked: Epsilon,
}

/// Why a provider does not answer an invitation unless its operator says more.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnswered {
    /// The invited job promises nothing.
    #[error("{from} invites to a job without a guarantee: its sums are exact")]
    Exact {
        /// Who invites.
        from: Name,
    },
    /// It promises too little.
    #[error(transparent)]
    TooMuch(#[from] TooMuchAsked),
}

/// What private jobs may cost in all at a provider that answers an invitation, if its operator says
/// nothing or only this ε.
///
/// # Errors
/// If the operator has to say more.
pub fn private_cap(
    invitation: &Invitation,
    epsilon: Option<Epsilon>,
) -> Result<PrivateCap, NotAnswered> {
    let Some(privacy) = &invitation.terms.privacy else {
        let from = invitation.from.clone();
        return Err(NotAnswered::Exact { from });
    };
    match epsilon {
        None => Ok(invited_cap(privacy)?),
        Some(epsilon) => Ok(PrivateCap {
            epsilon,
            per_user: epsilon,
            delta: privacy.delta(),
        }),
    }
}

/// What private jobs may cost in all by an invitation: twice the ε of such a job, which is room for three, up to the ceiling.
fn invited_cap(privacy: &PrivacyConfig) -> Result<PrivateCap, TooMuchAsked> {
    let asked = privacy.epsilon;
    if asked.to_f64() > EPSILON_CEILING {
        return Err(TooMuchAsked { asked });
    }
    let ceiling = (EPSILON_CEILING * 1e9) as u64;
    let twice = asked.billionths().saturating_mul(2).min(ceiling);
    let epsilon = Epsilon::from_billionths(twice).unwrap_or(asked);
    Ok(PrivateCap {
        epsilon,
        per_user: epsilon,
        delta: privacy.delta(),
    })
}

/// An entry of a provider that another one knows.
pub fn known_provider(name: &Name, fingerprint: PeerFingerprint) -> String {
    let name = toml::Value::from(name.as_str());
    format!("\n[[known_provider]]\nname = {name}\nfingerprint = \"{fingerprint}\"\n")
}

impl ProviderSetup<'_> {
    fn rows_per_batch(&self) -> u64 {
        let training = self.rows as f64 * (1.0 - self.invitation.terms.held_out.get());
        ROWS_PER_BATCH.min(training as u64).max(1)
    }

    /// Of a job.
    fn iterations(&self) -> u64 {
        self.invitation.iterations(self.schema)
    }

    /// What the file says.
    fn stated(&self) -> Json {
        let Self { invitation, .. } = self;
        let known = self
            .known
            .iter()
            .map(|provider| json!({ "name": provider.name, "fingerprint": provider.fingerprint }));
        json!({
            "identity": "identity",
            "data_set": invitation.data_set,
            "data": self.data.display().to_string(),
            "csv": (self.csv != CsvFormat::default()).then_some(self.csv),
            "schema": "schema.toml",
            "listen": self.listen,
            "store": "store",
            "allow": [{ "name": invitation.from, "fingerprint": invitation.fingerprint }],
            "known_provider": known.collect::<Vec<_>>(),
            "limits": {
                "epsilon_total": self.epsilon_total,
                "privacy_required": self.private.is_some(),
                "privacy_epsilon_total": self.private.map(|cap| cap.epsilon),
                "privacy_delta": self.private.map(|cap| cap.delta),
                "rows_per_batch_min": self.rows_per_batch(),
                "iterations_per_job": self.iterations(),
                "iterations_per_day": self.iterations().saturating_mul(JOBS_PER_DAY),
                "known_co_providers_min": self.known.len(),
                "revealed_per_unknown_max": REVEALED,
            },
        })
    }

    /// The whole `provider.toml`.
    pub fn to_toml(&self) -> String {
        let about = "Made by `heda provider setup`; docs/reference.md has every key. Paths are \
                     relative to this file.";
        let also = [
            "columns",
            "epsilon_total",
            "privacy_epsilon_total",
            "privacy_delta",
            "privacy_trusted",
            "privacy_room_told",
        ];
        let file = FileKeys::of::<ProviderConfig>(ProviderConfig::FILE);
        file.commented(about, &self.stated(), &also)
    }

    /// The limits in it, as they will be read.
    ///
    /// # Errors
    /// If they cannot be read back.
    pub fn limits(&self) -> Result<LimitsConfig, serde_json::Error> {
        LimitsConfig::deserialize(&self.stated()["limits"])
    }

    /// The same in words, for the operator and for the answer.
    pub fn policy(&self) -> Vec<String> {
        let from = &self.invitation.from;
        let (job, day) = (self.iterations(), self.iterations() * JOBS_PER_DAY);
        let mut words = vec![
            format!("{from} may ask, nobody else"),
            match self.private {
                Some(cap) => format!(
                    "private jobs only, all together at most epsilon {} at delta {}",
                    cap.epsilon, cap.delta
                ),
                None => "exact sums, without a guarantee".to_owned(),
            },
            match self.epsilon_total {
                Some(epsilon) => format!("columns are published for at most epsilon {epsilon}"),
                None => "nothing is published".to_owned(),
            },
            format!("at most {job} iterations a job and {day} a day"),
            format!("no gradient of fewer than {} rows", self.rows_per_batch()),
            format!("at most {REVEALED} numbers revealed for each unknown value"),
        ];
        words.push(match self.known.len() {
            0 => "other providers are not checked".to_owned(),
            known => format!("at least {known} of the other providers must be known here"),
        });
        words
    }
}

/// What a job minimises.
#[derive(Debug, Clone, Copy)]
pub struct Minimised {
    /// The loss.
    pub loss: LossKind,
    /// Iterations at most, of each model with one penalty.
    pub iterations: u32,
    /// The penalty, if it is not the usual one.
    pub c: Option<f64>,
    /// Whether the penalty is chosen by held-out rows.
    pub chosen: bool,
    /// Whether all classes have the same weight in total.
    pub balanced: bool,
}

/// A data user's `job.toml` for an invitation; providers come from their answers. How a private job
/// trains follows from its guarantee.
pub fn job(invitation: &Invitation, minimised: &Minimised) -> String {
    let terms = &invitation.terms;
    let mut stated = json!({
        "identity": "identity",
        "schema": "schema.toml",
        "data_set": invitation.data_set,
        "held_out": terms.held_out,
    });
    match &terms.privacy {
        Some(privacy) => {
            let delta = Some(privacy.delta());
            stated["privacy"] = json!(PrivacyConfig { delta, ..*privacy });
        }
        None => {
            stated["engine"] = json!(terms.engine);
            stated["iota"] = json!("all");
            stated["loss"] = json!(minimised.loss);
            stated["iterations"] = json!(minimised.iterations);
            match minimised.chosen {
                true => stated["penalty"] = json!("auto"),
                false => stated["c"] = json!(minimised.c),
            }
            stated["class_weight"] = json!(minimised.balanced.then_some("balanced"));
        }
    }
    let about = "Made by `heda invite`; docs/reference.md has every key. Paths are relative to this \
                 file. Providers come from their answers: heda train job.toml --answers answers";
    FileKeys::of::<JobConfig>(JobConfig::FILE).commented(about, &stated, &["trusted"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(epsilon: &str) -> PrivacyConfig {
        let text = format!("epsilon = {epsilon}\nrows = 1000\n");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn an_invitation_never_decides_more_than_the_ceiling() {
        let cap = |epsilon: &str| invited_cap(&promise(epsilon)).map(|cap| cap.epsilon.to_string());
        assert_eq!(cap("0.25").unwrap(), "0.5");
        assert_eq!(cap("1").unwrap(), "2");
        assert_eq!(cap("1.5").unwrap(), "2");
        assert_eq!(cap("2").unwrap(), "2");
        let error = cap("400").unwrap_err().to_string();
        assert!(error.contains("epsilon 400, and no more than 2"), "{error}");
        assert!(cap("2.000000001").is_err());
    }
}
