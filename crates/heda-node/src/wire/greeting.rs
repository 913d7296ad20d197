//! The first frame each way: which version of the protocol a party speaks.
//!
//! The layout of a greeting, and of the stop that may follow it, never changes: parties of
//! different versions must be able to tell each other so. Version 1 was gRPC: with it the handshake
//! fails.

use super::frame::FrameError;
use heda_job::proposal::PROTOCOL_VERSION;

/// The protocol's name in the TLS handshake, without a version.
pub(crate) const ALPN: &[u8] = b"heda";

const SOFTWARE_LIMIT: usize = 64;

/// Who speaks, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The version of the protocol that the sender speaks.
    pub version: u32,
    /// Name and version of the sender's program, for messages to people.
    pub software: String,
}

impl Greeting {
    /// Longest payload.
    pub(crate) const LIMIT: usize = 4 + SOFTWARE_LIMIT;

    /// What we say.
    pub fn ours() -> Self {
        Self {
            version: PROTOCOL_VERSION,
            software: concat!("heda ", env!("CARGO_PKG_VERSION")).into(),
        }
    }

    /// On the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let software = &self.software[..self.software.floor_char_boundary(SOFTWARE_LIMIT)];
        [&self.version.to_le_bytes(), software.as_bytes()].concat()
    }

    /// From the wire. The software is for people only: whatever it is, it becomes printable.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FrameError> {
        let (version, software) = bytes.split_first_chunk().ok_or(FrameError::NoGreeting)?;
        let software = &software[..software.len().min(SOFTWARE_LIMIT)];
        let software = String::from_utf8_lossy(software);
        Ok(Self {
            version: u32::from_le_bytes(*version),
            software: software.replace(char::is_control, " "),
        })
    }

    /// Whether its sender speaks our version.
    pub fn check(self) -> Result<(), FrameError> {
        match self.version {
            PROTOCOL_VERSION => Ok(()),
            theirs => Err(FrameError::Version {
                theirs,
                software: self.software,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_round_trips_and_fits() {
        let ours = Greeting::ours();
        assert!(ours.to_bytes().len() <= Greeting::LIMIT);
        assert_eq!(
            Greeting::from_bytes(&ours.to_bytes()).unwrap(),
            ours.clone()
        );
        assert!(ours.check().is_ok());
        let long = Greeting {
            version: 1,
            software: "é".repeat(100),
        };
        assert!(long.to_bytes().len() <= Greeting::LIMIT);
    }

    #[test]
    fn the_older_side_is_told_which_version_it_needs() {
        let of = |version: u32| {
            let bytes = [&version.to_le_bytes(), "heda\n9".as_bytes()].concat();
            let error = Greeting::from_bytes(&bytes).unwrap().check().unwrap_err();
            error.to_string()
        };
        let older = of(PROTOCOL_VERSION - 1);
        assert!(
            older.contains("this program speaks version 3; the peer must update"),
            "{older}"
        );
        let newer = of(PROTOCOL_VERSION + 1);
        assert!(
            newer.contains("(heda 9) speaks protocol version 4")
                && newer.ends_with("update this program"),
            "{newer}"
        );
    }

    #[test]
    fn fewer_than_four_bytes_are_no_greeting() {
        for length in 0..4 {
            let bytes = vec![2; length];
            assert!(matches!(
                Greeting::from_bytes(&bytes),
                Err(FrameError::NoGreeting)
            ));
        }
    }
}
