//! Steps J4 and J5 at the data user: the order of the features and the split that follows.

use super::spec::JobSpec;
use crate::description::{JobFault, Ranking};
use crate::engine::Joined;
use crate::error::{BadJob, JobError};
use crate::message::{Contribution, FromProvider, Message};
use crate::negotiation::{Member, NegotiationError, RankingUser, ScoresQuestion};
use crate::parallel::{Party, ask_all};
use crate::proposal::Split;
use heda_learn::score::{self, ScoringMethod};

/// Features best first with their agreed score, and the split that follows.
pub(super) struct Ranked {
    pub(super) ranking: Vec<(usize, Option<f64>)>,
    /// Whose order it is, in words.
    pub(super) ranked_by: String,
    pub(super) split: Split,
    /// Why so many features are encrypted, if that was chosen.
    pub(super) reason: Option<String>,
}

/// Ranks the features and splits them; `before` is the split that a checkpoint holds.
pub(super) fn rank(
    spec: &JobSpec,
    joined: &mut [Joined],
    before: Option<&Split>,
) -> Result<Ranked, JobError> {
    let (ranking, ranked_by) = match (&spec.order, &spec.job.features().ranking) {
        (Some(features), _) | (None, Ranking::Given { features }) => stated(given(spec, features)?),
        (None, Ranking::Schema) => {
            let features = 0..spec.schema.columns().len();
            stated(features.map(|feature| (feature, None)).collect())
        }
        (None, Ranking::Agreed { method }) => negotiate(spec, joined, *method)?,
        (None, Ranking::Chosen { method }) => {
            let chooser = spec.chooser.ok_or(JobFault::Chooser);
            chosen(spec, joined, *method, chooser.map_err(BadJob::from)?)?
        }
    };
    let order: Vec<usize> = ranking.iter().map(|(feature, _)| *feature).collect();
    let rows: Vec<usize> = joined
        .iter()
        .map(|party| party.part.rows + party.part.held_out)
        .collect();
    let chosen = spec.encrypted(&order, &rows, before)?;
    let reason = chosen.reason.clone();
    let split = spec.split(&order, chosen)?;
    Ok(Ranked {
        ranking,
        ranked_by,
        split,
        reason,
    })
}

/// Tells every provider the split.
pub(super) fn announce(joined: &mut [Joined], split: &Split) -> Result<(), JobError> {
    ask_all(joined, |party| split.send(party.channel()))?;
    Ok(())
}

fn input(error: NegotiationError) -> JobError {
    BadJob::from(error).into()
}

/// An order without scores.
fn unscored(ranking: &score::Ranking) -> Vec<(usize, Option<f64>)> {
    let order = ranking.order().iter();
    order.map(|&feature| (feature, None)).collect()
}

fn given(spec: &JobSpec, names: &[String]) -> Result<Vec<(usize, Option<f64>)>, JobError> {
    let columns = spec.schema.columns().iter();
    let features: Vec<String> = columns.map(|column| column.name().to_owned()).collect();
    let ranking = score::Ranking::from_names(names, &features).map_err(BadJob::from)?;
    Ok(unscored(&ranking))
}

type Order = (Vec<(usize, Option<f64>)>, String);

/// An order that nothing was read for.
fn stated(ranking: Vec<(usize, Option<f64>)>) -> Order {
    (ranking, "the job file".to_owned())
}

/// Step J4 with masked scores. A single provider has nobody to hide among: it chooses.
fn negotiate(
    spec: &JobSpec,
    joined: &mut [Joined],
    method: ScoringMethod,
) -> Result<Order, JobError> {
    if joined.len() == 1 {
        return chosen(spec, joined, method, 0);
    }
    let question = ScoresQuestion::new(&spec.schema, method, spec.id.seed());
    let messages = ask_all(joined, |party| {
        let channel = party.channel();
        channel.enter_phase("score");
        Ok(Contribution::receive(channel, question.contribution_bytes())?.0)
    })?;
    let agreed = user(question, joined)?.combine(&messages).map_err(input)?;
    let order = agreed.ranking.order().iter();
    let ranking = order.map(|&feature| (feature, Some(agreed.shares[feature])));
    Ok((ranking.collect(), format!("all providers, by {method}")))
}

/// Step J4 by one provider, which sends its order and no scores.
fn chosen(
    spec: &JobSpec,
    joined: &mut [Joined],
    method: ScoringMethod,
    chooser: usize,
) -> Result<Order, JobError> {
    let question = ScoresQuestion::new(&spec.schema, method, spec.id.seed());
    let limit = question.contribution_bytes();
    let Some(party) = joined.get_mut(chooser) else {
        return Err(BadJob::Chooser(chooser).into());
    };
    let messages = ask_all(std::slice::from_mut(party), |party| {
        let channel = party.channel();
        channel.enter_phase("score");
        Ok(Contribution::receive(channel, limit)?.0)
    })?;
    let ranking = user(question, joined)?
        .chosen_by(chooser, &messages[0])
        .map_err(input)?;
    let name = &joined[chooser].name;
    Ok((unscored(&ranking), format!("{name} alone, by {method}")))
}

fn user(question: ScoresQuestion, joined: &[Joined]) -> Result<RankingUser, JobError> {
    let members = joined.iter().map(|party| Member {
        name: party.name.clone(),
        rows: party.part.rows,
    });
    RankingUser::new(question, members.collect()).map_err(input)
}
