//! What an operator asks before a provider serves: whether it can, and what a job would cost and reveal.

use super::ledger::{account, reader, status};
use crate::error::{Error, ErrorKind, Remedy};
use crate::job_file::described;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_node::config::template::{self, ProviderSetup};
use heda_node::config::{Answer, Invitation, JobConfig, ProviderConfig};
use heda_node::guard::policy::{DataFacts, Grant, JobRequest, Policy};
use heda_node::guard::provider_data::ProviderData;
use heda_node::identity::Identity;
use heda_node::identity::trust::PeerIdentity;
use heda_node::system::clock::{Clock, SystemClock};
use std::path::Path;
use std::sync::Arc;

pub use heda_node::guard::check::{Finding, Verdict};

/// What a job would be to a provider.
#[derive(Debug)]
pub struct Preview {
    /// What it would cost and reveal, in words.
    pub words: String,
    /// Why it would be refused, if it would.
    pub refusal: Option<Error>,
}

/// Looks at data, schema, keys, ports, clock and permissions.
pub fn check(config: &ProviderConfig) -> Vec<Finding> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    heda_node::guard::check::check(config, &clock)
}

/// Says what a job file would cost and reveal if `peer`, a data user of the configuration, asked.
///
/// # Errors
/// If something of configuration or job cannot be used, or the job is about other data.
pub fn preview(
    config: &ProviderConfig,
    job: &Path,
    answers: Option<&Path>,
    peer: &str,
) -> Result<Preview, Error> {
    let job = job_with_answers(job, answers)?;
    let data = ProviderData::load(config).map_err(Error::input)?;
    let entry = config
        .allowed
        .iter()
        .find(|known| known.name.as_str() == peer);
    let entry =
        entry.ok_or_else(|| Error::input(format!("no [[allow]] entry is called {peer}")))?;
    let peer = PeerIdentity {
        label: peer.to_owned(),
        fingerprint: entry
            .fingerprint
            .ok_or_else(|| Error::input("only peers with a fingerprint can be previewed"))?,
    };
    let own = Identity::load(&config.identity).map_err(Error::input)?;
    // A provider may have the job file without its schema.
    let schema = match Schema::read(&job.schema) {
        Ok(schema) => Arc::new(schema),
        Err(_) => Arc::clone(data.schema()),
    };
    let description = described(&job, &schema)?;
    let facts = data.facts(description.held_out());
    let fingerprints = job.providers.iter().filter_map(|p| p.fingerprint);
    let others = fingerprints.filter(|f| *f != own.fingerprint());
    let named = ("preview".to_owned(), description.description());
    let scored = description.scores_features();
    let request = JobRequest::of(named, &facts, scored, others.collect());
    if job.data_set != config.data_set {
        let words = format!(
            "the job asks for the data set {}, this provider has {}",
            job.data_set, config.data_set
        );
        return Err(Error::new(ErrorKind::Refused, words));
    }
    judged(config, &peer, &facts, &request)
}

/// A job file with the providers that it names, or with those that answered.
fn job_with_answers(path: &Path, answers: Option<&Path>) -> Result<JobConfig, Error> {
    let job = JobConfig::load_early(path, &[]).map_err(Error::input)?;
    if !job.providers.is_empty() && answers.is_none() {
        return Ok(job);
    }
    let answers = Answer::of_job(path, answers).map_err(Error::input)?;
    JobConfig::load_with(path, &answers).map_err(Error::input)
}

/// What a provider's policy and ledger say to a request.
fn judged(
    config: &ProviderConfig,
    peer: &PeerIdentity,
    facts: &DataFacts,
    request: &JobRequest,
) -> Result<Preview, Error> {
    let policy = Policy::new(config);
    let learned = learned(config, peer)?;
    let account = account(config)?;
    let words = policy.preview(peer, facts, request, learned, account.as_ref());
    let refusal = match policy.evaluate(peer, facts, request) {
        Ok(grant) => room(config, peer, &grant)?,
        Err(refusal) => Some(Error::new(ErrorKind::Refused, refusal)),
    };
    Ok(Preview { words, refusal })
}

/// Who would be asked, where there is nothing but an invitation.
#[derive(Debug, Clone, Copy)]
pub struct Invited<'a> {
    /// The invitation.
    pub invitation: &'a Path,
    /// The rows, if they are at hand; otherwise an equal part of those that the invitation states.
    pub data: Option<&'a Path>,
    /// How many providers there would be.
    pub providers: usize,
}

/// Says what an invitation would cost and reveal, to a provider that has a configuration or to one that
/// would answer by `heda provider setup`.
///
/// # Errors
/// If the invitation or the rows cannot be used, or nobody says how many rows there are.
pub fn preview_invitation(
    invited: &Invited<'_>,
    config: Option<&ProviderConfig>,
) -> Result<Preview, Error> {
    let loaded = Invitation::load(invited.invitation);
    let (invitation, schema) = loaded.map_err(Error::input)?;
    let share = invitation.terms.held_out;
    if let Some(config) = config {
        let peer = allowed_by(config, &invitation)?;
        let facts = ProviderData::load(config)
            .map_err(Error::input)?
            .facts(share);
        let request = invitation.request(&schema, &facts, invited.providers);
        let request = request.map_err(Error::input)?;
        return judged(config, &peer, &facts, &request);
    }
    let peer = PeerIdentity {
        label: invitation.from.to_string(),
        fingerprint: invitation.fingerprint,
    };
    let rows = invited_rows(invited, &invitation, &schema)?;
    let facts = DataFacts::of_schema(&schema, rows, share);
    let request = invitation.request(&schema, &facts, invited.providers);
    let request = request.map_err(Error::input)?;
    let cap = template::private_cap(&invitation, None);
    let setup = ProviderSetup {
        invitation: &invitation,
        schema: &schema,
        data: Default::default(),
        rows,
        csv: Default::default(),
        listen: ([127, 0, 0, 1], 0).into(),
        epsilon_total: None,
        private: cap.as_ref().ok().copied(),
        known: &[],
    };
    let mut limits = setup.limits().map_err(Error::bug)?;
    // Where it answers nothing, it serves nothing.
    limits.privacy_required = true;
    let policy = Policy {
        data_set: invitation.data_set.to_string(),
        limits,
        known_providers: Default::default(),
        columns: Vec::new(),
    };
    let words = policy.preview(&peer, &facts, &request, 0, None);
    let refused = policy.evaluate(&peer, &facts, &request).err();
    let refused = refused.map(|refusal| Error::new(ErrorKind::Refused, refusal));
    Ok(match cap {
        Ok(_) => Preview {
            words,
            refusal: refused,
        },
        Err(why) => {
            let refusal = Error::new(ErrorKind::Refused, why);
            Preview {
                words: format!(
                    "{words}\n  `heda provider setup` refuses it: {}",
                    refusal.what()
                ),
                refusal: Some(refusal),
            }
        }
    })
}

/// Who invites, as the configuration knows it.
fn allowed_by(config: &ProviderConfig, invitation: &Invitation) -> Result<PeerIdentity, Error> {
    let refused = |words| Err(Error::new(ErrorKind::Refused, words));
    if invitation.data_set != config.data_set {
        return refused(format!(
            "the invitation is about the data set {}, this provider has {}",
            invitation.data_set, config.data_set
        ));
    }
    let fingerprint = invitation.fingerprint;
    let mut entries = config.allowed.iter();
    match entries.find(|entry| entry.fingerprint == Some(fingerprint)) {
        Some(entry) => Ok(PeerIdentity {
            label: entry.name.to_string(),
            fingerprint,
        }),
        None => refused(format!(
            "no [[allow]] entry has the fingerprint of {}, who invites",
            invitation.from
        )),
    }
}

/// The provider's rows, counted or as large a part of the stated ones as everybody's.
fn invited_rows(
    invited: &Invited<'_>,
    invitation: &Invitation,
    schema: &Schema,
) -> Result<u64, Error> {
    if let Some(data) = invited.data {
        let read = TableReader::new(schema).read_file(data);
        let (rows, _) = read.map_err(Error::input)?;
        return Ok(rows.rows() as u64);
    }
    let privacy = invitation.terms.privacy.as_ref().ok_or_else(|| {
        Error::input("the invitation does not say how many rows there are")
            .with_remedy(Remedy::GiveRows)
    })?;
    let trained = 1.0 - invitation.terms.held_out.get();
    let each = privacy.rows.get() as f64 / trained / invited.providers.max(1) as f64;
    Ok(each.round() as u64)
}

/// Why the budget of private jobs has no room for one more of this data user, if it has none.
fn room(
    config: &ProviderConfig,
    peer: &PeerIdentity,
    grant: &Grant,
) -> Result<Option<Error>, Error> {
    let cap = config.limits.private_cap();
    let (Some(job), Some(cap)) = (grant.private, cap) else {
        return Ok(None);
    };
    let room = match config.ledger_place().ledger.exists() {
        true => {
            let user = peer.fingerprint.to_string();
            let room = reader(config)?.private_room(&user, config.data_set.as_str(), &cap);
            room.map_err(Error::input)?
        }
        false => cap.of_user(),
    };
    let words = "the budget of private jobs has no room for this one, beside what was used and what \
                 running jobs have set aside";
    Ok((job > room).then(|| Error::new(ErrorKind::Refused, words)))
}

/// Numbers that a data user has learned so far; none before there is a ledger.
fn learned(config: &ProviderConfig, peer: &PeerIdentity) -> Result<u64, Error> {
    if !config.ledger_place().ledger.exists() {
        return Ok(0);
    }
    let own = peer.fingerprint.to_string();
    let disclosed = status(config)?.report.disclosed;
    let entry = disclosed.into_iter().find(|entry| entry.peer == own);
    Ok(entry.map_or(0, |entry| entry.numbers))
}
