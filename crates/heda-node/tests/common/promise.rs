//! A private job of three hospitals: what it promises, and what it costs them.
#![allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "every test file uses a part of these helpers"
)]

use crate::common::*;
use crate::hospitals::*;
use heda_dp::gdp::Cost;
use heda_job::description::Protected;
use heda_job::job::JobSpec;
use heda_job::proposal::Privacy;
use heda_learn::private::PrivatePlan;
use heda_node::client::training::{NetworkJob, NetworkJobError};
use heda_node::guard::ledger::PrivateCap;
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn privacy() -> Privacy {
    let promise = Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 699);
    promise.suited(&spec(1).schema)
}

pub fn private_spec(job: u64, privacy: Privacy) -> JobSpec {
    let private = spec(job).with(|raw| {
        raw.protected = Protected::All;
        raw.spending = None;
        raw.privacy = Some(privacy);
    });
    private.unwrap()
}

pub fn plan() -> PrivatePlan {
    let width = spec(1).schema.width() + 1;
    privacy().plan(width).unwrap()
}

pub const CAP: &str = "privacy_required = true\nprivacy_epsilon_total = 2\nprivacy_delta = 1e-5";

pub fn cap() -> PrivateCap {
    PrivateCap {
        epsilon: "2".parse().unwrap(),
        per_user: "2".parse().unwrap(),
        delta: "1e-5".parse().unwrap(),
    }
}

pub fn world(limits: &str) -> World {
    let mut world = World::new();
    for hospital in &mut world.hospitals {
        hospital.limits = format!("{limits}\n");
    }
    world
}

pub fn job(world: &World, daemons: &[Running], spec: JobSpec) -> NetworkJob {
    NetworkJob {
        spec,
        ..world.job(1, world.remotes(daemons), PATIENCE)
    }
}

pub fn spent(world: &World) -> Vec<Cost> {
    let one = |hospital: &Hospital| {
        let account = hospital.ledger().private("biopsies", Some(&cap()));
        account.unwrap().spent
    };
    world.hospitals.iter().map(one).collect()
}

pub fn refused(world: &World, job: NetworkJob, out: &str) -> String {
    match world.run(job, out, false) {
        Err(NetworkJobError::Refused { stop, .. }) => stop.to_string(),
        other => panic!("{:?}", other.map(|outcome| outcome.fits.len())),
    }
}
