//! Heda's Paillier beside the crate `fast-paillier`, under the same keys, in one run.
//!
//! Both encrypt and decrypt the same number on one core; each result is decrypted by the other
//! library before anything is timed. Times are the fastest of several calls, in milliseconds.

use fast_paillier::backend::Integer as TheirInteger;
use fast_paillier::DecryptionKey;
use heda_paper::integer::Natural;
use heda_paper::paillier::{KeySize, PrivateKey};
use heda_crypto::random::Randomness;
use rand::SeedableRng;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

fn milliseconds<T>(mut call: impl FnMut() -> T) -> f64 {
    let time = |_| {
        let start = Instant::now();
        black_box(call());
        1000.0 * start.elapsed().as_secs_f64()
    };
    (0..20).map(time).fold(f64::MAX, f64::min)
}

fn compare(size: KeySize) -> Result<(), Box<dyn Error>> {
    let mut rng = Randomness::from_os().fork("comparison", 0)?;
    let mut their_rng = rand::rngs::StdRng::from_seed([7; 32]);
    let ours = PrivateKey::generate(size, &mut rng)?;
    let public = ours.public();
    let primes = ours.to_bytes();
    let (p, q) = primes[2..].split_at((primes.len() - 2) / 2);
    let theirs = DecryptionKey::from_primes(
        TheirInteger::from_bytes_msf(p),
        TheirInteger::from_bytes_msf(q),
    )?;
    let their_public = theirs.encryption_key().clone();
    let m = public.plaintext(123_456_789i64)?;
    let their_m = TheirInteger::from_bytes_msf(&123_456_789u32.to_be_bytes());

    let c = public.encrypt(&m, &mut rng)?;
    let bytes = public.encode(std::slice::from_ref(&c))?;
    let crossed = theirs.decrypt(&TheirInteger::from_bytes_msf(&bytes[17..]))?;
    assert!(crossed == their_m, "they read what we wrote");
    let (their_c, _) = their_public.encrypt_with_random(&mut their_rng, &their_m)?;
    let number = Natural::from_be_bytes(&their_c.to_bytes_msf());
    let crossed = ours.decrypt(&public.ciphertext_from_number(&number)?)?;
    assert!(crossed == m, "we read what they wrote");

    let weight = 0x0123_4567_89ab_cdefi64.into();
    let their_weight = TheirInteger::from_bytes_msf(&0x0123_4567_89ab_cdefi64.to_be_bytes());
    let rows = [
        (
            "encrypt, public key",
            milliseconds(|| public.encrypt(&m, &mut rng)),
            milliseconds(|| their_public.encrypt_with_random(&mut their_rng, &their_m)),
        ),
        (
            "encrypt, owner",
            milliseconds(|| ours.encrypt(&m, &mut rng)),
            milliseconds(|| theirs.encrypt_with_random(&mut their_rng, &their_m)),
        ),
        (
            "decrypt",
            milliseconds(|| ours.decrypt(&c)),
            milliseconds(|| theirs.decrypt(&their_c)),
        ),
        (
            "add",
            milliseconds(|| public.add(&c, &c)),
            milliseconds(|| their_public.oadd(&their_c, &their_c)),
        ),
        (
            "multiply by 64 bits",
            milliseconds(|| public.scale_vartime(&c, &weight)),
            milliseconds(|| their_public.omul(&their_weight, &their_c)),
        ),
    ];
    println!("{} bits              heda ms   fast-paillier ms   ratio", size.bits());
    for (name, our_time, their_time) in rows {
        let ratio = their_time / our_time;
        println!("{name:<22} {our_time:>9.3} {their_time:>15.3} {ratio:>10.1}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    compare(KeySize::Bits2048)?;
    compare(KeySize::Bits3072)
}
