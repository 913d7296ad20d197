//! A data user whose transfers fail the consistency check, which no honest one does.

use super::*;
use heda_blocks::channel::{Wire, WireError};

/// Flips a bit of the first long message that is sent: one that asks for the places of rows.
struct Flipping {
    wire: Box<dyn Wire>,
    flipped: bool,
}

/// Whatever is longer is about rows.
const LONG: usize = 20_000;

impl Wire for Flipping {
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
        self.wire.send(message)
    }

    fn send_tagged(&mut self, tag: u8, body: &[u8]) -> Result<(), WireError> {
        if self.flipped || body.len() < LONG {
            return self.wire.send_tagged(tag, body);
        }
        self.flipped = true;
        let mut changed = body.to_vec();
        changed[LONG / 2] ^= 1;
        self.wire.send_tagged(tag, &changed)
    }

    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
        self.wire.receive(limit)
    }

    fn receive_tagged(&mut self, limit: usize) -> Result<(Option<u8>, Vec<u8>), WireError> {
        self.wire.receive_tagged(limit)
    }
}

#[test]
fn a_failed_check_ends_the_job_for_good_and_is_counted_in_the_ledger() {
    let guard = Guard::new("iterations_per_day = 1000\nbreach_pause_seconds = 0");
    let daemon = guard.serve();
    let user = User::new(guard.users[0].clone());
    let spec = spec(1, &["clump_thickness", "bare_nuclei"]);
    let failed = || guard.ledger().status(DATA_SET).unwrap().failed_checks;
    assert_eq!(failed(), []);
    let session = user.runtime.block_on(user.connector.open(&daemon.remote()));
    let session = session.unwrap();
    let wire = Flipping {
        wire: Box::new(session.wire),
        flipped: false,
    };
    let link = Link {
        name: "provider".into(),
        identity: session.identity,
        channel: Channel::new(Box::new(wire)),
    };
    let cheated = job::run(&spec, vec![link], &Randomness::from_os(), &mut Quiet, None);
    let error = cheated.unwrap_err().to_string();
    settled(&daemon);
    let counted = failed();
    assert_eq!(counted.len(), 1, "{error}");
    let own = guard.users[0].fingerprint().to_string();
    assert_eq!((&counted[0].peer, counted[0].checks), (&own, 1));
    assert_eq!(guard.jobs()[0].state, "failed");
    assert_eq!(guard.jobs()[0].iterations, 0, "nothing left");
    // The job does not go on, and an honest one of the same data user is another job.
    let again = train(&user, &daemon, &spec, &mut Quiet, None).unwrap_err();
    assert!(again.to_string().contains("consistency check"), "{again}");
    let honest = super::spec(2, &["clump_thickness", "bare_nuclei"]);
    train(&user, &daemon, &honest, &mut Quiet, None).unwrap();
    assert_eq!(failed()[0].checks, 1);
}
