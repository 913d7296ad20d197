//! Messages of a peer as [`Channel`] sees them.

use crate::driver::{Target, Verdict};
use heda_blocks::channel::{Channel, Wire, WireError};

const TAG: u8 = 3;
const LIMIT: usize = 64;

/// A wire on which one message arrives.
struct OneMessage(Vec<u8>);

impl Wire for OneMessage {
    fn send(&mut self, _: Vec<u8>) -> Result<(), WireError> {
        Ok(())
    }

    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
        match self.0.len() {
            got if got > limit => Err(WireError::TooLong { got, limit }),
            _ => Ok(std::mem::take(&mut self.0)),
        }
    }
}

/// Tag, length and stop message.
pub(super) fn messages() -> Target {
    let seeds = vec![vec![TAG], [&[TAG][..], &[0x61; LIMIT]].concat()];
    Target::new(seeds, |input| {
        let received = Channel::new(Box::new(OneMessage(input.to_vec()))).receive(TAG, LIMIT);
        if let Ok(body) = &received {
            assert!(body.len() <= LIMIT && body[..] == input[1..]);
        }
        Verdict::from(received)
    })
}
