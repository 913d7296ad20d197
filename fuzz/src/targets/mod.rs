//! What is fuzzed. One line here per target gives it a name, a test and a long run.

use crate::driver::Target;

mod channel;
mod lattice;
mod masking;
mod ot;
mod paillier;

macro_rules! targets {
    ($($name:ident => $make:path;)+) => {
        /// Names of all targets.
        pub const NAMES: &[&str] = &[$(stringify!($name)),+];

        /// The target with this name.
        pub fn find(name: &str) -> Option<Target> {
            match name {
                $(stringify!($name) => Some($make()),)+
                _ => None,
            }
        }

        #[cfg(test)]
        mod short_runs {
            $(#[test]
            fn $name() {
                super::short_run(super::find(stringify!($name)).unwrap());
            })+
        }
    };
}

targets! {
    channel => channel::messages;
    lattice_public_key => lattice::public_key;
    lattice_matrix => lattice::matrix;
    lattice_scores => lattice::scores;
    lattice_sums => lattice::sums;
    mask_announcements => masking::announcements;
    ot_answer => ot::answer;
    ot_random_request => ot::random_request;
    ot_request => ot::request;
    ot_setup_first => ot::setup_first;
    ot_setup_second => ot::setup_second;
    paillier_public_key => paillier::public_key;
    paillier_private_key => paillier::private_key;
    paillier_ciphertexts => paillier::ciphertexts;
    rsa_public_key => paillier::rsa_public_key;
    rsa_private_key => paillier::rsa_private_key;
    rsa_ciphertexts => paillier::rsa_ciphertexts;
}

/// Runs a target briefly: everything planned was executed, and something was refused.
#[cfg(test)]
fn short_run(target: Target) {
    use crate::driver::{Limit, run};
    let planned = target.short_run_length();
    match run(&target, 1, Limit::Iterations(planned)) {
        Err(failure) => panic!("{failure}"),
        Ok(summary) => {
            assert!(summary.executed > planned, "no seed was executed");
            assert_eq!(summary.accepted + summary.rejected, planned);
            assert!(summary.rejected > 0, "nothing was refused");
        }
    }
}
