//! What the daemon and the data user read: configurations, frames, identities, the ledger and the
//! state of a job.

use super::in_file::InFile;
use super::text::of_text;
use crate::driver::{Target, Verdict};
use heda_blocks::stop::{Stop, StopCode};
use heda_crypto::random::Randomness;
use heda_dp::account::{Charge, ColumnCharge, Mechanism};
use heda_dp::gdp::Cost;
use heda_job::guard::{AgreedPlan, Step};
use heda_node::client::state::StateFile;
use heda_node::config::{Answer, Invitation, JobConfig, ProviderConfig};
use heda_node::guard::ledger::{
    AnswerRecord, CountLimits, Counted, JobKey, JobTerms, Ledger, LedgerPlace, LedgerReader,
    PrivateCap,
};
use heda_node::identity::Identity;
use heda_node::identity::fingerprint::PeerFingerprint;
use heda_node::identity::trust::OwnCertificate;
use heda_node::system::clock::{SystemClock, Timestamp};
use heda_node::wire::frame::{Frame, FrameKind, Head};
use heda_node::wire::greeting::Greeting;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The first frame of a peer: a head within its limit, then a greeting or a stop.
pub(super) fn frame() -> Target {
    let stop = Stop::new(StopCode::Busy, "later");
    let frames = [Frame::greeting(), Frame::stop(&stop)];
    let seeds = frames.map(|frame| frame.as_bytes().to_vec()).into();
    Target::new(seeds, |input| {
        let Some((head, payload)) = input.split_first_chunk() else {
            return Verdict::Rejected;
        };
        let Ok(Head { kind, length }) = Head::from_bytes(*head) else {
            return Verdict::Rejected;
        };
        assert!(length <= kind.limit());
        let Some(payload) = payload.get(..length) else {
            return Verdict::Rejected;
        };
        match kind {
            FrameKind::Greeting => Verdict::from(Greeting::from_bytes(payload)),
            FrameKind::Stop => {
                let stop = Stop::from_bytes(payload);
                assert!(stop.to_bytes().len() <= kind.limit());
                Verdict::Accepted
            }
            _ => Verdict::Accepted,
        }
    })
}

/// The provider's configuration.
pub(super) fn provider_file() -> Target {
    let file = InFile::named("provider.toml");
    Target::new(Vec::new(), move |input| {
        Verdict::from(ProviderConfig::load(file.put(input)))
    })
}

/// The data user's job.
pub(super) fn job_file() -> Target {
    let file = InFile::named("job.toml");
    Target::new(Vec::new(), move |input| {
        let path = file.put(input);
        let early = JobConfig::load_early(path, &[]);
        let loaded = JobConfig::load(path);
        assert!(
            early.is_ok() || loaded.is_err(),
            "what is whole is good early, too"
        );
        Verdict::from(loaded)
    })
}

/// An invitation, with a schema in it.
pub(super) fn invitation() -> Target {
    let file = InFile::named("invitation.toml");
    Target::new(Vec::new(), move |input| {
        Verdict::from(Invitation::load(file.put(input)))
    })
}

/// A provider's answer, by itself and in the folder that a data user collects them in.
pub(super) fn answer() -> Target {
    let file = InFile::named("x.answer.toml");
    Target::new(Vec::new(), move |input| {
        let read = Answer::load(file.put(input));
        let found = Answer::in_folder(file.folder());
        match (&read, &found) {
            (Ok(answer), Ok(found)) => assert_eq!(found, std::slice::from_ref(answer)),
            (read, found) => assert!(read.is_err() && found.is_err()),
        }
        Verdict::from(read)
    })
}

/// The state of a job that is taken up again.
pub(super) fn checkpoint() -> Target {
    let file = InFile::named("checkpoint.json");
    Target::new(Vec::new(), move |input| {
        file.put(input);
        Verdict::from(StateFile::resume(file.folder(), "terms", &[]))
    })
}

/// Fingerprints as people copy them.
pub(super) fn fingerprint() -> Target {
    of_text(|text| Verdict::from(text.parse::<PeerFingerprint>()))
}

fn stored_identity(folder: &Path) {
    let mut rng = Randomness::seeded(1).fork("identity", 0).expect("seeded");
    let year = Duration::from_secs(365 * 86_400);
    Identity::generate("clinic", Timestamp(1_800_000_000), year, &mut rng)
        .and_then(|identity| identity.store("clinic", folder))
        .expect("a new identity in an empty folder");
}

/// A target for one file of an identity, whose other files are sound.
fn identity_file(name: &str) -> Target {
    let file = InFile::named(name);
    stored_identity(file.folder());
    let seed = std::fs::read(file.folder().join(name)).expect("it was stored");
    let decode = move |input: &[u8]| {
        file.put(input);
        let read = Identity::load(file.folder());
        if let Ok(identity) = &read {
            let _ = OwnCertificate::of(identity);
            let _ = identity
                .chain()
                .first()
                .map(PeerFingerprint::of_certificate);
        }
        Verdict::from(read)
    };
    Target::new(vec![seed], decode)
}

/// The secret key.
pub(super) fn identity_key() -> Target {
    identity_file("key.pem")
}

/// The certificate, of which signature and dates are looked at.
pub(super) fn identity_certificate() -> Target {
    identity_file("certificate.pem")
}

fn charge() -> Charge {
    let column = ColumnCharge {
        name: "age".into(),
        epsilon: "0.5".parse().expect("a decimal"),
    };
    Charge::new(Mechanism::Laplace, vec![column]).expect("one column")
}

/// The shares of the key exchange of TLS, as a server and as a client get them from a stranger.
pub(super) fn key_exchange() -> Target {
    let group = || heda_node::identity::key_exchange::provider().kx_groups[0];
    let client = group().start().expect("there is randomness");
    let answer = group().start_and_complete(client.pub_key());
    let answer = answer.expect("our own share is one").pub_key;
    let seeds = vec![client.pub_key().to_vec(), answer];
    let target = Target::new(seeds, move |input| {
        let started = group().start().expect("there is randomness");
        let completed = started.complete(input).is_ok();
        let served = group().start_and_complete(input).is_ok();
        // Both lengths are different, so nothing is a share of both kinds.
        assert!(!(completed && served));
        match completed || served {
            true => Verdict::Accepted,
            false => Verdict::Rejected,
        }
    });
    target.short_run(300)
}

/// What a release cost, as it stands in the ledger and in a message to the data user.
pub(super) fn charge_json() -> Target {
    let seed = serde_json::to_vec(&charge()).expect("a charge is JSON");
    Target::new(vec![seed], |input| {
        let read = serde_json::from_slice::<Charge>(input);
        if let Ok(charge) = &read {
            let written = serde_json::to_vec(charge).expect("a charge is JSON");
            assert!(serde_json::from_slice::<Charge>(&written).is_ok_and(|again| again == *charge));
        }
        Verdict::from(read)
    })
}

/// A ledger with its anchor beside it.
fn ledger_place(folder: &std::path::Path) -> LedgerPlace {
    LedgerPlace {
        ledger: folder.join("ledger.sqlite"),
        anchor: folder.join("ledger.anchor"),
    }
}

fn private_cap() -> PrivateCap {
    PrivateCap {
        epsilon: "2".parse().expect("a decimal"),
        per_user: "1".parse().expect("a decimal"),
        delta: "1e-6".parse().expect("a decimal"),
    }
}

/// A ledger with a job, a release, a noisy gradient and a refusal, and its anchor.
fn written_ledger() -> [Vec<u8>; 2] {
    let file = InFile::named("ledger.sqlite");
    let place = ledger_place(file.folder());
    let ledger = Ledger::open(&place, Arc::new(SystemClock)).expect("a new ledger");
    let digits = "ab".repeat(32);
    let job = JobKey {
        peer: format!("sha256:{digits}").parse().expect("a fingerprint"),
        id: "job".into(),
    };
    let terms = JobTerms {
        label: "university".into(),
        data_set: "ward".into(),
        engine: "resident".into(),
        request: "all".into(),
    };
    let total = "1".parse().expect("a decimal");
    ledger.open_job(&job, &terms).expect("a new job");
    ledger
        .buy(&job, "ward", charge(), total)
        .expect("enough budget");
    ledger.store_release(&job, b"noisy").expect("paid");
    let cap = private_cap();
    let cost = Cost::from_parts(1 << 40);
    let plan = AgreedPlan {
        cost: cost.times(2),
        persons: false,
    };
    ledger
        .hold(&job, "ward", plan, &cap)
        .expect("enough budget");
    let step = Step::Gradient {
        number: 0,
        cost: Some(cost),
    };
    let answer = AnswerRecord {
        step: &step,
        what: Counted::Iteration,
        limits: CountLimits {
            per_job: 9,
            per_day: 9,
        },
        disclosure: None,
        cap: Some(cap),
        plan: Some(plan),
    };
    ledger.answer(&job, "ward", &answer).expect("enough budget");
    ledger.refuse(&job, "university", "too late").expect("room");
    let copy = file.folder().join("copy.sqlite");
    let reader = LedgerReader::open(&place).expect("our own");
    reader.copy_to(&copy).expect("room");
    [copy, place.anchor].map(|path| std::fs::read(path).expect("just written"))
}

/// Rows of the ledger, as reports read them.
pub(super) fn ledger() -> Target {
    let file = InFile::named("ledger.sqlite");
    let total = "1".parse().ok();
    let [seed, anchor] = written_ledger();
    let place = ledger_place(file.folder());
    std::fs::write(&place.anchor, anchor).expect("room for temporary files");
    let decode = move |input: &[u8]| {
        file.put(input);
        let read = LedgerReader::open(&place).and_then(|reader| {
            reader.status("ward", Timestamp(1_800_000_000))?;
            reader.private("ward", Some(&private_cap()))?;
            reader.budget("ward", total)
        });
        Verdict::from(read)
    };
    Target::new(vec![seed], decode).short_run(500)
}

/// The ledger's anchor, beside a ledger that is sound; then the ledger as the daemon opens it. An
/// anchor that was changed must not pass for the ledger's own.
pub(super) fn anchor() -> Target {
    let file = InFile::named("ledger.anchor");
    let [ledger, seed] = written_ledger();
    let place = ledger_place(file.folder());
    let whole = seed.clone();
    let decode = move |input: &[u8]| {
        std::fs::write(&place.ledger, &ledger).expect("room for temporary files");
        file.put(input);
        let read = LedgerReader::open(&place).map(drop);
        let opened = Ledger::open(&place, Arc::new(SystemClock)).map(drop);
        assert_eq!(read.is_ok(), opened.is_ok(), "{read:?}, {opened:?}");
        let a_line_is_left = whole
            .chunks(whole.len() / 2)
            .any(|line| input.chunks(line.len()).any(|found| found == line));
        assert!(a_line_is_left || opened.is_err(), "an anchor of nobody");
        Verdict::from(opened)
    };
    Target::new(vec![seed], decode).short_run(200)
}
