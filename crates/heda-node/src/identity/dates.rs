//! When a certificate begins and ends, read from its DER. The TLS library checks dates only while
//! it checks a signature, for which an authority's certificate would be needed.

use crate::system::clock::Timestamp;
use ed25519_dalek::pkcs8::spki::der::asn1::{GeneralizedTime, UtcTime};
use ed25519_dalek::pkcs8::spki::der::{Error, Reader, SliceReader, Tag};

/// First and last second of a certificate's validity (RFC 5280, section 4.1); none for bytes that
/// are no certificate.
pub(crate) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let mut reader = SliceReader::new(certificate).ok()?;
    let dates = reader.sequence(|certificate| {
        let dates = certificate.sequence(|fields| {
            // The version may be absent; then serial number, algorithm, issuer.
            let before = 3 + u8::from(Tag::peek(fields)?.is_context_specific());
            for _ in 0..before {
                fields.tlv_bytes()?;
            }
            let dates = fields.sequence(|dates| Ok::<_, Error>((time(dates)?, time(dates)?)))?;
            skip_rest(fields)?;
            Ok::<_, Error>(dates)
        })?;
        skip_rest(certificate)?;
        Ok::<_, Error>(dates)
    });
    dates.ok()
}

fn time<'a>(reader: &mut impl Reader<'a>) -> Result<Timestamp, Error> {
    let since_1970 = match Tag::peek(reader)? {
        Tag::UtcTime => reader.decode::<UtcTime>()?.to_unix_duration(),
        _ => reader.decode::<GeneralizedTime>()?.to_unix_duration(),
    };
    Ok(Timestamp(since_1970.as_secs()))
}

fn skip_rest<'a>(reader: &mut impl Reader<'a>) -> Result<(), Error> {
    while !reader.is_finished() {
        reader.tlv_bytes()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use heda_crypto::random::Randomness;
    use std::time::Duration;

    #[test]
    fn dates_are_those_that_a_certificate_was_made_with() {
        let mut rng = Randomness::seeded(1).fork("dates", 0).unwrap();
        // Leap days, both encodings of years, and the first day of a century.
        for (now, days) in [
            (1_709_164_800, 1),
            (1_800_000_000, 825),
            (2_524_607_999, 30),
            (4_102_444_800, 3650),
        ] {
            let validity_of = Duration::from_secs(days * 86_400);
            let made = Identity::generate("a", Timestamp(now), validity_of, &mut rng).unwrap();
            let (first, last) = validity(&made.chain()[0]).unwrap();
            assert_eq!(first.0, now - 3600);
            assert_eq!(last.0, now + days * 86_400);
        }
    }

    #[test]
    fn other_bytes_have_no_dates() {
        let mut rng = Randomness::seeded(1).fork("dates", 1).unwrap();
        let year = Duration::from_secs(31_536_000);
        let made = Identity::generate("a", Timestamp(1_800_000_000), year, &mut rng).unwrap();
        let whole = made.chain()[0].to_vec();
        for length in 0..whole.len() {
            assert_eq!(validity(&whole[..length]), None, "{length}");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            // Anything but a panic.
            let _ = validity(&damaged);
        }
    }
}
