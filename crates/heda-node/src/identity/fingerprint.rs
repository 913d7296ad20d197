//! The name by which parties know each other: SHA-256 of a public key.
//!
//! A fingerprint covers the DER encoding of the certificate's SubjectPublicKeyInfo, not the whole
//! certificate. So a certificate can be renewed, and the fingerprint that peers have pinned stays the
//! same as long as the key does. Peers that pin a fingerprint accept self-signed certificates only;
//! one that an authority signed is for peers that trust this authority.

use super::trust::TrustError;
use ed25519_dalek::VerifyingKey;
use heda_learn::reference::{FileValue, Form};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "sha256:";

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const ED25519_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The Ed25519 key of a certificate, if it has one.
pub(crate) fn ed25519_key(certificate: &CertificateDer<'_>) -> Option<VerifyingKey> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let key = parsed.subject_public_key_info();
    let bytes = key.as_ref().strip_prefix(&ED25519_PREFIX)?;
    VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()
}

/// SHA-256 of a SubjectPublicKeyInfo in DER.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerFingerprint([u8; 32]);

impl PeerFingerprint {
    /// The fingerprint of a public key.
    pub fn of_key(key: &SubjectPublicKeyInfoDer<'_>) -> Self {
        Self(Sha256::digest(key.as_ref()).into())
    }

    /// The fingerprint of an identity key.
    pub fn of_identity(key: &VerifyingKey) -> Self {
        let info = [&ED25519_PREFIX[..], key.as_bytes()].concat();
        Self::of_key(&info.into())
    }

    /// The fingerprint of the key in a certificate. Says nothing about its validity.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        Ok(Self::of_key(&parsed.subject_public_key_info()))
    }

    /// Thirty digits for people who compare by voice: the chance that another key has the same is
    /// 1 to 10^30.
    pub fn spoken(&self) -> String {
        let first = self.0[..16].iter();
        let number = first.fold(0u128, |sum, &byte| (sum << 8) | u128::from(byte));
        let digits = format!("{:030}", number % 10u128.pow(30));
        let groups: Vec<&str> = (0..6).map(|at| &digits[5 * at..5 * at + 5]).collect();
        groups.join(" ")
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PeerFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PeerFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FileValue for PeerFingerprint {
    fn form() -> Form {
        let words = format!("a fingerprint in quotes, `{PREFIX}` and 64 hexadecimal digits");
        Form::Text(words, Some(format!("^{PREFIX}[0-9a-fA-F]{{64}}$")))
    }
}

impl FromStr for PeerFingerprint {
    type Err = TrustError;

    fn from_str(text: &str) -> Result<Self, TrustError> {
        let digits = text
            .strip_prefix(PREFIX)
            .ok_or(TrustError::NotAFingerprint)?;
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(TrustError::NotAFingerprint);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = 16 * hex_digit(pair[0])? + hex_digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, TrustError> {
    let value = char::from(digit)
        .to_digit(16)
        .ok_or(TrustError::NotAFingerprint)?;
    u8::try_from(value).map_err(|_| TrustError::NotAFingerprint)
}

impl serde::Serialize for PeerFingerprint {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for PeerFingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_the_same_fingerprint() {
        let one = PeerFingerprint(std::array::from_fn(|i| i as u8 * 7));
        assert_eq!(one.to_string().parse(), Ok(one));
        assert_eq!(one.to_string().len(), 7 + 64);
    }

    #[test]
    fn a_spoken_fingerprint_has_thirty_digits() {
        let spoken = PeerFingerprint([0; 32]).spoken();
        assert_eq!(spoken, "00000 00000 00000 00000 00000 00000");
        let mut last = [0; 32];
        last[15] = 7;
        assert!(PeerFingerprint(last).spoken().ends_with(" 00007"));
        assert_ne!(PeerFingerprint([1; 32]).spoken(), spoken);
    }

    #[test]
    fn anything_else_is_refused() {
        let good = PeerFingerprint([0xab; 32]).to_string();
        for bad in [
            "",
            "sha256:",
            &good[7..],
            &good[..70],
            &format!("{good}0"),
            &good.replacen("ab", "g0", 1),
            &good.replacen("ab", "+1", 1),
            &good.replacen("ab", "é", 1),
        ] {
            assert_eq!(
                bad.parse::<PeerFingerprint>(),
                Err(TrustError::NotAFingerprint),
                "{bad}"
            );
        }
    }
}
