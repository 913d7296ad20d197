//! `provider check`: finds what is wrong before anyone connects.
//!
//! Every part is looked at even when another one fails, so that one run shows everything. Nothing
//! leaves the machine, and the ledger is made or brought to the current version but not otherwise
//! changed.

use crate::config::ProviderConfig;
use crate::daemon::serve::{check_row_secret, open_ledger, row_secret_path};
use crate::guard::provider_data::{DataError, ProviderData};
use crate::identity::Identity;
use crate::identity::trust::{OwnCertificate, Trust};
use crate::system::clock::{Clock, Timestamp};
use crate::system::files;
use heda_learn::infer;
use heda_learn::schema::Schema;
use serde::Serialize;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// What was found about one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, but someone should look at it.
    Warning,
    /// It does not work.
    Bad,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which part.
    pub part: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// In words, with the remedy.
    pub words: String,
}

impl Finding {
    fn good(part: &'static str, words: impl Into<String>) -> Self {
        Self::new(part, Verdict::Good, words)
    }

    fn new(part: &'static str, verdict: Verdict, words: impl Into<String>) -> Self {
        let words = words.into();
        Self {
            part,
            verdict,
            words,
        }
    }

    fn bad(part: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::new(part, Verdict::Bad, cause.to_string())
    }
}

/// A certificate that expires within this time deserves a warning.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);
/// No clock of a working machine shows less: 2024-01-01.
const EARLIEST: Timestamp = Timestamp(1_704_067_200);

/// Looks at everything that a configuration names.
pub fn check(config: &ProviderConfig, clock: &Arc<dyn Clock>) -> Vec<Finding> {
    let mut findings = vec![check_clock(clock.now())];
    findings.extend(check_identity(config, clock.now()));
    findings.push(check_peers(config));
    findings.push(check_port("port", config.listen));
    findings.extend(config.metrics.map(check_metrics));
    findings.push(check_store(config, clock));
    findings.extend(check_marks(config));
    let data = ProviderData::load(config);
    findings.extend(check_names(config, clock, data.as_ref().ok()));
    findings.extend(check_data(config, data));
    findings
}

/// A data set that had another name: the ledger would give its rows a fresh budget.
fn check_names(
    config: &ProviderConfig,
    clock: &Arc<dyn Clock>,
    data: Option<&ProviderData>,
) -> Vec<Finding> {
    // A ledger that cannot be read is told with the store.
    let Ok(ledger) = open_ledger(config, clock) else {
        return Vec::new();
    };
    let digest = data.map(ProviderData::digest);
    let cap = config.limits.private_cap();
    let others = ledger.other_data_sets(config.data_set.as_str(), digest, cap.as_ref());
    let others = others.unwrap_or_default().into_iter();
    others
        .map(|other| Finding::new("name", Verdict::Warning, other.to_string()))
        .collect()
}

/// A schema that was proposed from rows and is still marked as such.
fn check_marks(config: &ProviderConfig) -> Option<Finding> {
    // A schema that cannot be read is told with the data.
    let (text, _) = Schema::read_with_text(&config.schema).ok()?;
    match infer::unconfirmed(&text) {
        0 => None,
        marks => {
            let (mark, schema) = (infer::MARK, config.schema.display());
            let words = format!(
                "{marks} lines of {schema} are still marked {mark}: what was read from rows is \
                 private; replace it by what is publicly known and delete the marks"
            );
            Some(Finding::bad("schema", words))
        }
    }
}

fn check_clock(now: Timestamp) -> Finding {
    if now < EARLIEST {
        let words = "the clock shows a time long ago; certificates and daily limits need it right";
        return Finding::bad("clock", words);
    }
    Finding::good("clock", now.to_string())
}

fn check_identity(config: &ProviderConfig, now: Timestamp) -> Vec<Finding> {
    let identity = match Identity::load(&config.identity) {
        Ok(identity) => identity,
        Err(cause) => return vec![Finding::bad("identity", cause)],
    };
    let known = Finding::good("identity", identity.fingerprint().to_string());
    vec![known, check_certificate(OwnCertificate::of(&identity), now)]
}

fn check_certificate(certificate: Option<OwnCertificate>, now: Timestamp) -> Finding {
    let Some(certificate) = certificate else {
        return Finding::bad("certificate", "its dates cannot be read; ask who signed it");
    };
    let (signed, remedy) = match certificate.self_signed {
        true => (
            "self-signed",
            "run `heda init --renew`, the fingerprint stays",
        ),
        false => (
            "signed by an authority",
            "have the authority sign request.pem again",
        ),
    };
    let soon = Timestamp(now.0 + RENEW_BEFORE.as_secs());
    if now < certificate.begins || now > certificate.ends {
        let words = format!("{signed}, not within its dates; {remedy}");
        return Finding::bad("certificate", words);
    }
    if soon > certificate.ends {
        let words = format!("{signed}, expires within 30 days; {remedy}");
        return Finding::new("certificate", Verdict::Warning, words);
    }
    Finding::good(
        "certificate",
        format!("{signed}, valid for 30 days and more"),
    )
}

fn check_peers(config: &ProviderConfig) -> Finding {
    let peers = match config.trusted_peers() {
        Ok(peers) => peers,
        Err(cause) => return Finding::bad("peers", cause),
    };
    if peers.is_empty() {
        let words = "no [[allow]] entry: nobody can connect";
        return Finding::new("peers", Verdict::Warning, words);
    }
    let count = peers.len();
    match Trust::new(peers) {
        Ok(_) => Finding::good("peers", format!("{count} may connect")),
        Err(cause) => Finding::bad("peers", cause),
    }
}

fn check_port(part: &'static str, address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::good(part, format!("{address} is free")),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => Finding::new(
            part,
            Verdict::Warning,
            format!("{address} is in use; fine if this provider runs already"),
        ),
        Err(cause) => Finding::bad(part, format!("cannot listen on {address}: {cause}")),
    }
}

fn check_metrics(address: SocketAddr) -> Finding {
    if !address.ip().is_loopback() {
        return Finding::new(
            "metrics",
            Verdict::Warning,
            format!("{address} is not a local address: others can read the metrics"),
        );
    }
    check_port("metrics", address)
}

fn check_store(config: &ProviderConfig, clock: &Arc<dyn Clock>) -> Finding {
    let ledger = match open_ledger(config, clock) {
        Ok(ledger) => ledger,
        Err(cause) => return Finding::bad("store", cause),
    };
    let usable = check_row_secret(&row_secret_path(&config.store), &ledger);
    if let Err(cause) = usable {
        return Finding::bad("store", cause);
    }
    let place = config.ledger_place();
    for path in [&place.ledger, &place.anchor] {
        if let Ok(false) = files::is_private(path) {
            let path = path.display();
            let words = format!("{path} can be read by others; run `chmod 600` on it");
            return Finding::bad("store", words);
        }
    }
    match ledger.today() {
        Ok(day) if day > clock.now().day() => Finding::new(
            "store",
            Verdict::Warning,
            "the ledger has seen a later day than the clock shows: the clock went back, or was \
             ahead once; daily limits count by the later day until it has come, and a larger \
             iterations_per_day makes room until then",
        ),
        Ok(_) => Finding::good("store", "the ledger is whole and can be written"),
        Err(cause) => Finding::bad("store", cause),
    }
}

fn check_data(config: &ProviderConfig, data: Result<ProviderData, DataError>) -> Vec<Finding> {
    let data = match data {
        Ok(data) => data,
        Err(cause) => return vec![Finding::bad("data", cause)],
    };
    let rows = data.rows();
    let least = config.limits.rows_per_batch_min.get();
    let size = if (rows as u64) < least {
        let words = format!("{rows} rows, but a batch needs {least}: every job would be refused");
        Finding::bad("data", words)
    } else {
        Finding::good(
            "data",
            format!("{rows} rows fit the schema {}", data.fingerprint()),
        )
    };
    let notes = data.warnings().iter();
    let notes = notes.map(|words| Finding::new("data", Verdict::Warning, words.clone()));
    std::iter::once(size).chain(notes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_by_whoever_signed_it() {
        let day = |days: u64| Timestamp(EARLIEST.0 + days * 86_400);
        let certificate = |self_signed| {
            Some(OwnCertificate {
                begins: day(10),
                ends: day(100),
                self_signed,
            })
        };
        let cases = [
            (9, Verdict::Bad),
            (10, Verdict::Good),
            (70, Verdict::Good),
            (71, Verdict::Warning),
            (100, Verdict::Warning),
            (101, Verdict::Bad),
        ];
        for (now, verdict) in cases {
            let ours = check_certificate(certificate(true), day(now));
            let theirs = check_certificate(certificate(false), day(now));
            assert_eq!((ours.verdict, theirs.verdict), (verdict, verdict), "{now}");
            assert!(theirs.words.contains("authority") && !theirs.words.contains("--renew"));
            let renews = ours.words.contains("--renew");
            assert_eq!(renews, verdict != Verdict::Good, "{}", ours.words);
        }
        assert_eq!(check_certificate(None, day(0)).verdict, Verdict::Bad);
    }
}
