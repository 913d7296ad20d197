//! What a provider allows: a pure function of its configuration, the facts about its data and a
//! request. No clock, no ledger, no network; budgets that change over time are the ledger's.

use crate::config::{LimitsConfig, ProviderConfig};
use crate::fingerprint::Fingerprint;
use crate::trust::PeerIdentity;
use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The limits of one provider, ready to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The data set on offer.
    pub data_set: String,
    /// What jobs may use up.
    pub limits: LimitsConfig,
    /// Other providers that this one knows.
    pub known_providers: BTreeSet<Fingerprint>,
    /// Columns by the label of a data user; all columns for those that are not here.
    pub columns: Vec<(String, Vec<String>)>,
}

/// What is public about the provider's data: agreed by schema, or told to the data user anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFacts {
    /// Fingerprint of the schema.
    pub schema: String,
    /// Names of the features.
    pub features: Vec<String>,
    /// Encoded columns of each feature.
    pub widths: Vec<usize>,
    /// Rows for training.
    pub training_rows: u64,
}

/// Which features are published, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// These.
    Named(Vec<String>),
    /// This many; which ones depends on the ranking.
    Any(u64),
}

impl Published {
    fn count(&self) -> u64 {
        match self {
            Self::Named(names) => names.len() as u64,
            Self::Any(count) => *count,
        }
    }
}

/// What a data user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// The job's name, chosen by the data user.
    pub job: String,
    /// Fingerprint of the schema.
    pub schema: String,
    /// The engine.
    pub engine: String,
    /// Features that the model uses.
    pub features: Vec<String>,
    /// Which of them are published rather than encrypted.
    pub published: Published,
    /// What publishing may cost in sum, if anything is published.
    pub epsilon: Option<Epsilon>,
    /// How it is published.
    pub mechanism: Mechanism,
    /// Iterations at most.
    pub iterations: u64,
    /// Rows in an iteration; none for all.
    pub batch_rows: Option<u64>,
    /// The other providers of the job.
    pub co_providers: Vec<Fingerprint>,
}

/// One reason for a refusal.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Reason {
    /// Names that do not fit into a ledger.
    #[error("a job's name has 1 to 64 letters, digits, `-` and `_`")]
    JobName,
    /// The parties read different schemas.
    #[error("the schemas differ: the data user has {theirs}, this provider {ours}")]
    Schema {
        /// The data user's.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// A feature that is not there.
    #[error("there is no feature {0} in this data set")]
    NoFeature(String),
    /// A feature that this data user may not use.
    #[error("{label} may not use the column {column}")]
    Column {
        /// The data user.
        label: String,
        /// The column.
        column: String,
    },
    /// No features, or one twice.
    #[error("the request must name each of its features once, and at least one")]
    Features,
    /// More is published than there is.
    #[error("{published} features would be published, of {features}")]
    Published {
        /// Asked.
        published: u64,
        /// There are.
        features: usize,
    },
    /// An engine that is not allowed.
    #[error("engine {asked} is not allowed here; allowed: {allowed}")]
    Engine {
        /// Asked.
        asked: String,
        /// Allowed.
        allowed: String,
    },
    /// A mechanism that is not allowed.
    #[error("publishing by {0} is not allowed here")]
    Mechanism(Mechanism),
    /// Publishing without a price.
    #[error("features are published, but the request names no epsilon")]
    NoEpsilon,
    /// This provider publishes nothing, or not that much.
    #[error("epsilon {asked} is asked, this provider allows {allowed} in all")]
    Epsilon {
        /// Asked.
        asked: Epsilon,
        /// Allowed; zero when nothing may be published.
        allowed: String,
    },
    /// Batches so small that a gradient is about few people.
    #[error("{asked} rows in a batch, this provider wants at least {least}")]
    Batch {
        /// Asked, or there are.
        asked: u64,
        /// The limit.
        least: u64,
    },
    /// Too many iterations.
    #[error("{asked} iterations, a job may have {most}")]
    Iterations {
        /// Asked.
        asked: u64,
        /// The limit.
        most: u64,
    },
    /// The data user could have invented the others.
    #[error("{known} of the other providers are known to this one, it wants at least {least}")]
    CoProviders {
        /// Known ones in the request.
        known: u64,
        /// The limit.
        least: u64,
    },
    /// A gradient a day keeps secrecy away.
    #[error(
        "the job would learn {revealed} numbers about {unknowns} unknown values, {ratio:.4} for \
         each; this provider allows {most}"
    )]
    Revealed {
        /// Numbers that the data user would see.
        revealed: u128,
        /// Values that it does not know.
        unknowns: u128,
        /// Their ratio.
        ratio: f64,
        /// The limit.
        most: f64,
    },
}

/// A request that is not allowed, with every reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// All of them, so that they can be mended at once.
    pub reasons: Vec<Reason>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        f.write_str(&reasons.join("; "))
    }
}

impl std::error::Error for Refusal {}

/// A request that is allowed, with what it will cost and reveal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grant {
    /// Iterations at most.
    pub iterations: u64,
    /// ε for what is published; none when nothing is.
    pub epsilon: Option<Epsilon>,
    /// Rows in the smallest batch.
    pub batch_rows: u64,
    /// Numbers that the data user sees: a gradient for each iteration.
    pub revealed: u128,
    /// Values of this provider that the data user does not know.
    pub unknowns: u128,
    /// Known providers among the others.
    pub known_co_providers: u64,
}

/// What a request would reveal, counted.
struct Count {
    revealed: u128,
    unknowns: u128,
}

impl Count {
    fn ratio(&self) -> f64 {
        self.revealed as f64 / self.unknowns.max(1) as f64
    }
}

impl Policy {
    /// The policy of a configuration.
    pub fn new(config: &ProviderConfig) -> Self {
        let restricted = config.allowed.iter().filter_map(|peer| {
            let columns = peer.columns.clone()?;
            Some((peer.name.to_string(), columns))
        });
        Self {
            data_set: config.data_set.to_string(),
            limits: config.limits.clone(),
            known_providers: config
                .known_providers
                .iter()
                .map(|p| p.fingerprint)
                .collect(),
            columns: restricted.collect(),
        }
    }

    /// Whether a request of this peer is allowed.
    pub fn evaluate(
        &self,
        peer: &PeerIdentity,
        facts: &DataFacts,
        request: &JobRequest,
    ) -> Result<Grant, Refusal> {
        let mut reasons = well_formed(request, facts);
        if reasons.is_empty() {
            reasons.extend(self.columns_allowed(peer, request));
            reasons.extend(self.publishing_allowed(request));
            reasons.extend(self.amounts_allowed(facts, request));
        }
        if !reasons.is_empty() {
            return Err(Refusal { reasons });
        }
        let count = count(facts, request);
        Ok(Grant {
            iterations: request.iterations,
            epsilon: request.epsilon.filter(|_| request.published.count() > 0),
            batch_rows: batch_rows(facts, request),
            revealed: count.revealed,
            unknowns: count.unknowns,
            known_co_providers: self.known_co_providers(request),
        })
    }

    fn columns_allowed(&self, peer: &PeerIdentity, request: &JobRequest) -> Vec<Reason> {
        let entry = self.columns.iter().find(|(label, _)| *label == peer.label);
        let Some((label, allowed)) = entry else {
            return Vec::new();
        };
        let forbidden = request.features.iter().filter(|f| !allowed.contains(f));
        forbidden
            .map(|column| Reason::Column {
                label: label.clone(),
                column: column.clone(),
            })
            .collect()
    }

    fn publishing_allowed(&self, request: &JobRequest) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if request.published.count() == 0 {
            return reasons;
        }
        if !self.limits.mechanisms.contains(&request.mechanism) {
            reasons.push(Reason::Mechanism(request.mechanism));
        }
        match (request.epsilon, self.limits.epsilon_total) {
            (None, _) => reasons.push(Reason::NoEpsilon),
            (Some(asked), Some(total)) if asked <= total => {}
            (Some(asked), total) => reasons.push(Reason::Epsilon {
                asked,
                allowed: total.map_or("0".into(), |total| total.to_string()),
            }),
        }
        reasons
    }

    fn amounts_allowed(&self, facts: &DataFacts, request: &JobRequest) -> Vec<Reason> {
        let limits = &self.limits;
        let mut reasons = Vec::new();
        if !limits.engines.contains(&request.engine) {
            reasons.push(Reason::Engine {
                asked: request.engine.clone(),
                allowed: limits.engines.join(", "),
            });
        }
        let (rows, least) = (batch_rows(facts, request), limits.rows_per_batch_min.get());
        if rows < least {
            reasons.push(Reason::Batch { asked: rows, least });
        }
        let (asked, most) = (request.iterations, limits.iterations_per_job.get());
        if asked > most || asked == 0 {
            reasons.push(Reason::Iterations { asked, most });
        }
        let (known, least) = (
            self.known_co_providers(request),
            limits.known_co_providers_min,
        );
        if known < least {
            reasons.push(Reason::CoProviders { known, least });
        }
        let count = count(facts, request);
        let most = limits.revealed_per_unknown_max.get();
        if count.ratio() > most {
            reasons.push(Reason::Revealed {
                revealed: count.revealed,
                unknowns: count.unknowns,
                ratio: count.ratio(),
                most,
            });
        }
        reasons
    }

    fn known_co_providers(&self, request: &JobRequest) -> u64 {
        let others: BTreeSet<_> = request.co_providers.iter().collect();
        let known = others.iter().filter(|f| self.known_providers.contains(f));
        known.count() as u64
    }

    /// What a request would cost and reveal, for the operator's eyes, allowed or not.
    pub fn preview(&self, peer: &PeerIdentity, facts: &DataFacts, request: &JobRequest) -> String {
        let mut text = String::new();
        let count = count(facts, request);
        let verdict = self.evaluate(peer, facts, request);
        let _ = writeln!(
            text,
            "Job {} of {} on {}",
            request.job, peer.label, self.data_set
        );
        let _ = writeln!(
            text,
            "  engine {}, {} features, {} of them published, {} iterations over {} rows",
            request.engine,
            request.features.len(),
            request.published.count(),
            request.iterations,
            batch_rows(facts, request)
        );
        let cost = match request.epsilon {
            Some(epsilon) if request.published.count() > 0 => format!(
                "epsilon {epsilon} in sum over the published columns of a row, by {}: {}",
                request.mechanism,
                request.mechanism.guarantee()
            ),
            _ => "nothing is published, no epsilon is spent".into(),
        };
        let _ = writeln!(text, "  cost: {cost}");
        let _ = writeln!(
            text,
            "  reveals: at most {} numbers (the gradient in each iteration) about {} unknown \
             values of this provider, {:.4} for each",
            count.revealed,
            count.unknowns,
            count.ratio()
        );
        let alone = request.co_providers.is_empty();
        let whose = if alone {
            "of this provider alone: nobody else takes part"
        } else {
            "summed over all providers; whoever controls all the others sees this one's"
        };
        let _ = writeln!(
            text,
            "  gradients: {whose}; {} of {} other providers are known here",
            self.known_co_providers(request),
            request.co_providers.len()
        );
        match verdict {
            Ok(_) => {
                text.push_str("  verdict: allowed, as far as the budget of the ledger reaches")
            }
            Err(refusal) => {
                let _ = write!(text, "  verdict: refused: {refusal}");
            }
        }
        text
    }
}

fn well_formed(request: &JobRequest, facts: &DataFacts) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !(1..=64).contains(&request.job.len()) || !request.job.chars().all(fits) {
        reasons.push(Reason::JobName);
    }
    if request.schema != facts.schema {
        reasons.push(Reason::Schema {
            theirs: request.schema.chars().take(80).collect(),
            ours: facts.schema.clone(),
        });
    }
    let distinct: BTreeSet<_> = request.features.iter().collect();
    if distinct.is_empty() || distinct.len() != request.features.len() {
        reasons.push(Reason::Features);
    }
    let strange = distinct.iter().filter(|f| !facts.features.contains(f));
    let strange = strange.take(10).map(|f| f.chars().take(80).collect());
    reasons.extend(strange.map(Reason::NoFeature));
    let taking_part = match &request.published {
        Published::Named(names) => {
            let published: BTreeSet<_> = names.iter().collect();
            published.len() == names.len() && published.is_subset(&distinct)
        }
        Published::Any(count) => *count <= distinct.len() as u64,
    };
    if !taking_part {
        reasons.push(Reason::Published {
            published: request.published.count(),
            features: request.features.len(),
        });
    }
    reasons
}

/// Rows in an iteration. A batch cannot have more than there are.
fn batch_rows(facts: &DataFacts, request: &JobRequest) -> u64 {
    let all = facts.training_rows;
    request.batch_rows.map_or(all, |rows| rows.min(all))
}

/// A gradient has a number for each encoded column and one for the bias. Unknown are the cells of
/// the encrypted features and the label of each row; where the ranking decides what is published,
/// the widest features are taken for published.
fn count(facts: &DataFacts, request: &JobRequest) -> Count {
    let widths = facts.features.iter().zip(&facts.widths);
    let mut taking_part: Vec<(u128, &String)> = widths
        .filter(|(feature, _)| request.features.contains(feature))
        .map(|(feature, width)| (*width as u128, feature))
        .collect();
    taking_part.sort_unstable();
    let all: u128 = taking_part.iter().map(|(width, _)| width).sum();
    let hidden: u128 = match &request.published {
        Published::Named(names) => {
            let encrypted = taking_part.iter().filter(|(_, f)| !names.contains(f));
            encrypted.map(|(width, _)| width).sum()
        }
        Published::Any(count) => {
            let published = usize::try_from(*count).unwrap_or(usize::MAX);
            let encrypted = taking_part.len().saturating_sub(published);
            let narrowest = taking_part[..encrypted].iter();
            narrowest.map(|(width, _)| width).sum()
        }
    };
    Count {
        revealed: u128::from(request.iterations) * (all + 1),
        unknowns: u128::from(facts.training_rows) * (hidden + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::SubjectPublicKeyInfoDer;

    fn fingerprint(name: &str) -> Fingerprint {
        Fingerprint::of_key(&SubjectPublicKeyInfoDer::from(name.as_bytes().to_vec()))
    }

    fn policy() -> Policy {
        let limits = "epsilon_total = 2\nrows_per_batch_min = 50\niterations_per_job = 100\n\
             iterations_per_day = 1000\nknown_co_providers_min = 1\n\
             revealed_per_unknown_max = 0.5";
        Policy {
            data_set: "ward".into(),
            limits: toml::from_str(limits).unwrap(),
            known_providers: [fingerprint("b"), fingerprint("c")].into(),
            columns: vec![("narrow".into(), vec!["age".into()])],
        }
    }

    fn facts() -> DataFacts {
        DataFacts {
            schema: "s1".into(),
            features: vec!["age".into(), "ward".into(), "marker".into()],
            widths: vec![1, 4, 1],
            training_rows: 500,
        }
    }

    fn request() -> JobRequest {
        JobRequest {
            job: "job-1".into(),
            schema: "s1".into(),
            engine: "lookup".into(),
            features: vec!["age".into(), "marker".into()],
            published: Published::Any(1),
            epsilon: Some("1.5".parse().unwrap()),
            mechanism: Mechanism::Laplace,
            iterations: 40,
            batch_rows: None,
            co_providers: vec![fingerprint("b"), fingerprint("stranger")],
        }
    }

    fn peer(label: &str) -> PeerIdentity {
        PeerIdentity {
            label: label.into(),
            fingerprint: fingerprint(label),
        }
    }

    fn refused(change: impl FnOnce(&mut JobRequest)) -> Vec<Reason> {
        let mut asked = request();
        change(&mut asked);
        let verdict = policy().evaluate(&peer("user"), &facts(), &asked);
        verdict.unwrap_err().reasons
    }

    #[test]
    fn a_fair_request_is_granted_with_its_cost() {
        let grant = policy()
            .evaluate(&peer("user"), &facts(), &request())
            .unwrap();
        // 40 gradients of two columns and the bias; one hidden column and the label of 500 rows.
        assert_eq!((grant.revealed, grant.unknowns), (120, 1000));
        assert_eq!(grant.epsilon, Some("1.5".parse().unwrap()));
        assert_eq!((grant.batch_rows, grant.known_co_providers), (500, 1));
    }

    #[test]
    fn every_limit_has_its_reason() {
        use Reason as R;
        assert!(matches!(
            refused(|r| r.job = "../x".into())[..],
            [R::JobName]
        ));
        assert!(matches!(
            refused(|r| r.schema = "s2".into())[..],
            [R::Schema { .. }]
        ));
        assert!(matches!(
            refused(|r| r.features.clear())[..],
            [R::Features, ..]
        ));
        let twice = refused(|r| r.features[1] = "age".into());
        assert!(matches!(twice[..], [R::Features]));
        let strange = refused(|r| r.features[0] = "salary".into());
        assert!(matches!(strange[..], [R::NoFeature(_)]));
        assert!(matches!(
            refused(|r| r.published = Published::Any(3))[..],
            [R::Published { .. }]
        ));
        assert!(matches!(
            refused(|r| r.engine = "paper".into())[..],
            [R::Engine { .. }]
        ));
        let ima = refused(|r| r.mechanism = Mechanism::Ima);
        assert!(matches!(ima[..], [R::Mechanism(_)]));
        assert!(matches!(refused(|r| r.epsilon = None)[..], [R::NoEpsilon]));
        let dear = refused(|r| r.epsilon = Some("2.1".parse().unwrap()));
        assert!(matches!(dear[..], [R::Epsilon { .. }]));
        assert!(matches!(
            refused(|r| r.batch_rows = Some(49))[..],
            [R::Batch { .. }]
        ));
        assert!(matches!(
            refused(|r| r.iterations = 101)[..],
            [R::Iterations { .. }]
        ));
        assert!(matches!(
            refused(|r| r.iterations = 0)[..],
            [R::Iterations { .. }]
        ));
        let invented = refused(|r| r.co_providers = vec![fingerprint("x"); 9]);
        assert!(matches!(
            invented[..],
            [R::CoProviders { known: 0, least: 1 }]
        ));
    }

    #[test]
    fn repeating_a_known_provider_does_not_make_it_two() {
        let mut strict = policy();
        strict.limits.known_co_providers_min = 2;
        let mut asked = request();
        asked.co_providers = vec![fingerprint("b"); 2];
        assert!(strict.evaluate(&peer("user"), &facts(), &asked).is_err());
    }

    #[test]
    fn too_many_numbers_for_the_unknowns_are_refused() {
        let mut few = facts();
        few.training_rows = 60;
        let mut asked = request();
        asked.iterations = 21;
        let verdict = policy().evaluate(&peer("user"), &few, &asked);
        let reasons = verdict.unwrap_err().reasons;
        assert!(matches!(
            reasons[..],
            [Reason::Revealed {
                revealed: 63,
                unknowns: 120,
                ..
            }]
        ));
        asked.iterations = 20;
        policy().evaluate(&peer("user"), &few, &asked).unwrap();
    }

    #[test]
    fn a_data_user_is_held_to_its_columns() {
        let verdict = policy().evaluate(&peer("narrow"), &facts(), &request());
        let words = verdict.unwrap_err().to_string();
        assert_eq!(words, "narrow may not use the column marker");
    }

    #[test]
    fn nothing_published_costs_nothing() {
        let mut asked = request();
        asked.published = Published::Named(vec![]);
        asked.mechanism = Mechanism::Ima;
        let grant = policy().evaluate(&peer("user"), &facts(), &asked).unwrap();
        assert_eq!(grant.epsilon, None);
    }

    #[test]
    fn all_reasons_are_told_at_once() {
        let reasons = refused(|r| {
            r.iterations = 1000;
            r.engine = "paper".into();
            r.co_providers.clear();
        });
        assert_eq!(reasons.len(), 4, "{reasons:?}");
    }

    #[test]
    fn the_preview_says_what_it_costs_and_reveals() {
        let text = policy().preview(&peer("user"), &facts(), &request());
        for part in [
            "epsilon 1.5 in sum",
            "at most 120 numbers",
            "about 1000 unknown",
            "1 of 2 other providers are known",
            "verdict: allowed",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let mut alone = request();
        alone.co_providers.clear();
        let text = policy().preview(&peer("user"), &facts(), &alone);
        assert!(
            text.contains("this provider alone") && text.contains("refused"),
            "{text}"
        );
    }

    #[test]
    fn named_columns_are_counted_exactly_and_guesses_at_their_worst() {
        let mut asked = request();
        asked.features = facts().features;
        let mut revealed = |published| {
            asked.published = published;
            let grant = policy().evaluate(&peer("user"), &facts(), &asked).unwrap();
            (grant.revealed, grant.unknowns)
        };
        let ward = Published::Named(vec!["ward".into()]);
        assert_eq!(revealed(ward), (40 * 7, 500 * 3));
        assert_eq!(revealed(Published::Any(1)), (40 * 7, 500 * 3));
        let age = Published::Named(vec!["age".into()]);
        assert_eq!(revealed(age), (40 * 7, 500 * 6));
        let elsewhere = refused(|r| r.published = Published::Named(vec!["ward".into()]));
        assert!(matches!(elsewhere[..], [Reason::Published { .. }]));
    }
}
