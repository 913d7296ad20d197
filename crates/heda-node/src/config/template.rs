//! Files that people would otherwise write by hand, complete and with comments.

use super::LimitsConfig;
use super::invitation::{Answer, Invitation};
use super::privacy::PrivacyConfig;
use super::values::Name;
use crate::guard::ledger::PrivateCap;
use crate::identity::fingerprint::PeerFingerprint;
use heda_dp::epsilon::Epsilon;
use heda_learn::loss::LossKind;
use heda_learn::schema::Schema;
use heda_learn::table::CsvFormat;
use std::fmt::Write;
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

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// An entry of a provider that another one knows.
pub fn known_provider(name: &Name, fingerprint: PeerFingerprint) -> String {
    format!(
        "\n[[known_provider]]\nname = {}\nfingerprint = \"{fingerprint}\"\n",
        quoted(name.as_str())
    )
}

impl ProviderSetup<'_> {
    fn rows_per_batch(&self) -> u64 {
        let training = self.rows as f64 * (1.0 - self.invitation.terms.held_out.get());
        ROWS_PER_BATCH.min(training as u64).max(1)
    }

    /// How the rows are written, where that was said.
    fn csv_line(&self) -> String {
        let as_table = toml::Value::try_from(self.csv);
        match (self.csv == CsvFormat::default(), as_table) {
            (false, Ok(table)) => format!("csv = {table}\n"),
            _ => String::new(),
        }
    }

    /// Of a job.
    fn iterations(&self) -> u64 {
        self.invitation.iterations(self.schema)
    }

    /// What private jobs may cost, and whether others are served.
    fn privacy_lines(&self) -> String {
        let Some(cap) = self.private else {
            return "# Sums without a guarantee are served. `true` would refuse every job that does not\n\
                    # promise an epsilon and a delta for everything it reveals of a row.\n\
                    privacy_required = false\n\
                    # privacy_epsilon_total = 2\n# privacy_delta = 1e-6\n"
                .to_owned();
        };
        format!(
            "# Only jobs that promise an epsilon and a delta for everything they reveal of a row.\n\
             privacy_required = true\n\
             # What all of them together may reach, for as long as the ledger lives. No step of a job is\n\
             # answered twice, so a job never costs more than its plan. Decide it before the first job.\n\
             privacy_epsilon_total = {}\nprivacy_delta = {}\n\
             # On how many other providers' noise a job may count besides this one's. When not given,\n\
             # all but one of those of its providers that are listed below.\n\
             # privacy_trusted = 0\n\
             # Whether a data user is told how large a further private job of its own may be.\n\
             # privacy_room_told = true\n",
            cap.epsilon, cap.delta
        )
    }

    /// The whole `provider.toml`.
    pub fn to_toml(&self) -> String {
        let Self { invitation, .. } = self;
        let mut text = format!(
            "# Made by `heda provider setup`; docs/reference.md has every key. Paths are relative \
             to this file.\n\n\
             # Key and certificate of this provider. Keep identity/key.pem secret.\n\
             identity = \"identity\"\n\
             # The name under which the ledger counts what jobs use up.\n\
             data_set = {}\n\
             # The rows, CSV or Parquet, and what their columns mean.\n\
             data = {}\n{}schema = \"schema.toml\"\n\
             # Where data users connect.\n\
             listen = \"{}\"\n\
             # The ledger: what was promised and what was used. Back it up.\n\
             store = \"store\"\n\n\
             # Who may ask. `columns = [...]` would hold a data user to some columns.\n\
             [[allow]]\nname = {}\nfingerprint = \"{}\"\n\n\
             # How much, for everybody together.\n[limits]\n",
            quoted(invitation.data_set.as_str()),
            quoted(&self.data.display().to_string()),
            self.csv_line(),
            self.listen,
            quoted(invitation.from.as_str()),
            invitation.fingerprint,
        );
        text += &self.privacy_lines();
        let publish = match self.epsilon_total {
            Some(epsilon) => format!("epsilon_total = {epsilon}\n"),
            None => "# epsilon_total = 1.0\n".to_owned(),
        };
        let _ = write!(
            text,
            "# What publishing columns with noise may cost in all; without it nothing is published.\n\
             {publish}\
             # The fewest rows that a gradient may be about.\n\
             rows_per_batch_min = {}\n\
             # Iterations of one job, and of all jobs on one day.\n\
             iterations_per_job = {}\niterations_per_day = {}\n\
             # Numbers that a job may learn for each value of a row that it does not know.\n\
             revealed_per_unknown_max = {REVEALED}\n\
             # How many of the other providers of a job must be listed below. Gradients are summed\n\
             # over all providers: a data user that plays all the others itself sees this one's.\n\
             known_co_providers_min = {}\n",
            self.rows_per_batch(),
            self.iterations(),
            self.iterations().saturating_mul(JOBS_PER_DAY),
            self.known.len(),
        );
        for answer in self.known {
            text += &known_provider(&answer.name, answer.fingerprint);
        }
        text
    }

    /// The limits in it, as they will be read.
    ///
    /// # Errors
    /// If they cannot be read back.
    pub fn limits(&self) -> Result<LimitsConfig, toml::de::Error> {
        #[derive(serde::Deserialize)]
        struct Limited {
            limits: LimitsConfig,
        }
        let file: Limited = toml::from_str(&self.to_toml())?;
        Ok(file.limits)
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
    /// Whether every class counts as much as the others together.
    pub balanced: bool,
}

impl Minimised {
    fn lines(&self) -> String {
        let given =
            |c: f64| format!("# The penalty as scikit-learn's C; 1 if not given.\nc = {c:?}\n");
        let c = match self.chosen {
            true => Some(
                "# Several penalties are tried; one half of the held-out rows chooses, the other half\n\
                 # is for the report.\npenalty = \"auto\"\n"
                    .to_owned(),
            ),
            false => self.c.map(given),
        };
        let balanced = self.balanced.then_some(
            "# Every class counts as much as the others together.\nclass_weight = \"balanced\"\n",
        );
        c.unwrap_or_default() + balanced.unwrap_or_default()
    }
}

/// A data user's `job.toml` for an invitation; providers come from their answers.
pub fn job(invitation: &Invitation, minimised: &Minimised) -> String {
    let terms = &invitation.terms;
    if let Some(privacy) = &terms.privacy {
        return private_job(invitation, privacy);
    }
    format!(
        "# Made by `heda invite`; docs/reference.md has every key. Paths are relative to this file.\n\
         # Providers come from their answers: heda train job.toml --answers answers\n\n\
         # Key and certificate of the data user. Keep identity/key.pem secret.\n\
         identity = \"identity\"\n\
         # The schema and the name of the data, as in the invitation.\n\
         schema = \"schema.toml\"\ndata_set = {}\n\
         # How gradients are computed, and how many features are encrypted: all of them.\n\
         engine = \"{}\"\niota = \"all\"\n\
         # What is minimised, in how many iterations at most.\n\
         loss = {}\niterations = {}\n{}\
         # Share of the rows that the model is evaluated on.\n\
         held_out = {}\n",
        quoted(invitation.data_set.as_str()),
        terms.engine.name(),
        quoted(&minimised.loss.to_string()),
        minimised.iterations,
        minimised.lines(),
        terms.held_out.get(),
    )
}

/// The same for a private job: how it trains follows from its promise.
fn private_job(invitation: &Invitation, privacy: &PrivacyConfig) -> String {
    let trusted = match privacy.trusted {
        Some(trusted) => format!("trusted = {trusted}\n"),
        None => "# trusted = 0\n".to_owned(),
    };
    format!(
        "# Made by `heda invite`; docs/reference.md has every key. Paths are relative to this file.\n\
         # Providers come from their answers: heda train job.toml --answers answers\n\n\
         # Key and certificate of the data user. Keep identity/key.pem secret.\n\
         identity = \"identity\"\n\
         # The schema and the name of the data, as in the invitation.\n\
         schema = \"schema.toml\"\ndata_set = {}\n\
         # Share of the rows that the model is evaluated on.\n\
         held_out = {}\n\n\
         # What is promised for everything that the job reveals of a row; steps and noise follow.\n\
         [privacy]\nepsilon = {}\ndelta = {}\n\
         # About how many training rows all providers have together.\n\
         rows = {}\n\
         # On how many others' noise each provider counts besides its own; all but one when not given.\n\
         {trusted}",
        quoted(invitation.data_set.as_str()),
        invitation.terms.held_out.get(),
        privacy.epsilon,
        privacy.delta(),
        privacy.rows,
    )
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
