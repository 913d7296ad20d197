//! `heda-repro paillier`: Paillier at the key lengths that jobs use, beside the plain ways of doing the
//! same.

use heda::Error;
use heda::measure::milliseconds;
use heda_crypto::random::Randomness;
use heda_paper::integer::{Integer, Natural};
use heda_paper::paillier::{Ciphertext, KeySize, Plaintext, PrivateKey};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;
use std::fmt;
use std::hint::black_box;

/// Measure Paillier's cryptosystem on this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda-repro paillier
  heda-repro paillier --json")]
pub(super) struct Arguments {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<String, Error> {
    let measured = measure()?;
    match arguments.json {
        true => serde_json::to_string_pretty(&measured).map_err(bug),
        false => {
            let sections: Vec<String> = measured.iter().map(ToString::to_string).collect();
            Ok(sections.join("\n\n"))
        }
    }
}

/// Ciphertexts of the linear combination.
const TERMS: usize = 1000;
/// Plaintexts of a batch.
const BATCH: usize = 64;

/// Times in milliseconds, one core unless named otherwise, and the ratios that matter.
#[derive(Serialize)]
struct PaillierSection {
    key_bits: usize,
    milliseconds: Times,
    ratios: Ratios,
}

#[derive(Serialize)]
struct Times {
    encrypt_naive: f64,
    encrypt_full_randomness: f64,
    encrypt: f64,
    encrypt_as_owner: f64,
    decrypt: f64,
    decrypt_without_crt: f64,
    add: f64,
    scale_64_bits: f64,
    combination_one_by_one: f64,
    combination: f64,
    combination_vartime: f64,
    batch_one_core: f64,
    batch_all_cores: f64,
}

#[derive(Serialize)]
struct Ratios {
    /// r^N modulo N² by the big-integer backend, against the public key's encryption.
    encrypt_to_naive: f64,
    /// The same against the key owner's encryption.
    encrypt_as_owner_to_naive: f64,
    /// r^N by the same fast arithmetic, against the public key's encryption.
    encrypt_to_full_randomness: f64,
    decrypt_to_without_crt: f64,
    combination_to_one_by_one: f64,
    combination_vartime_to_one_by_one: f64,
    batch_all_cores_to_one: f64,
}

/// Measures all key lengths.
fn measure() -> Result<Vec<PaillierSection>, Error> {
    let sizes = [KeySize::Bits2048, KeySize::Bits3072];
    sizes.into_iter().map(section).collect()
}

fn bug(error: impl fmt::Display) -> Error {
    Error::bug(error.to_string())
}

fn section(size: KeySize) -> Result<PaillierSection, Error> {
    let mut rng = Randomness::from_os().fork("bench", 0).map_err(bug)?;
    let private = PrivateKey::generate(size, &mut rng).map_err(bug)?;
    let public = private.public();
    let numbers = |_| Natural::random_bits(64, &mut rng);
    let weights: Vec<Integer> = (0..TERMS).map(numbers).map(Integer::from).collect();
    let plaintexts: Vec<Plaintext> = weights
        .iter()
        .map(|w| public.plaintext(w.clone()))
        .collect::<Result<_, _>>()
        .map_err(bug)?;
    let ciphertexts = private.encrypt_batch(&plaintexts, &mut rng).map_err(bug)?;
    let one_core = ThreadPoolBuilder::new().num_threads(1).build();
    let case = Case {
        private,
        plaintexts,
        weights,
        ciphertexts,
        one_core: one_core.map_err(bug)?,
    };
    Ok(PaillierSection::new(size.bits(), case.times()?))
}

struct Case {
    private: PrivateKey,
    plaintexts: Vec<Plaintext>,
    weights: Vec<Integer>,
    ciphertexts: Vec<Ciphertext>,
    one_core: ThreadPool,
}

impl Case {
    fn times(&self) -> Result<Times, Error> {
        let (private, public) = (&self.private, self.private.public());
        let (m, c, w) = (&self.plaintexts[0], &self.ciphertexts[0], &self.weights[0]);
        let mut rng = Randomness::from_os().fork("bench", 1).map_err(bug)?;
        let modulus = public.modulus();
        let square = modulus * modulus;
        let r = Natural::random_below(modulus, &mut rng).ok_or_else(|| bug("an empty key"))?;
        let terms: Vec<(&Ciphertext, &Integer)> =
            self.ciphertexts.iter().zip(&self.weights).collect();
        let batch = &self.plaintexts[..BATCH];
        // One call of each first, so that tables are made before the clock runs.
        let _ = (public.encrypt(m, &mut rng), private.encrypt(m, &mut rng));
        Ok(Times {
            encrypt_naive: milliseconds(|| {
                black_box(r.power_by_backend(modulus, &square));
            }),
            encrypt_full_randomness: milliseconds(|| {
                black_box(public.encrypt_with_full_randomness(m, &mut rng).is_ok());
            }),
            encrypt: milliseconds(|| {
                black_box(public.encrypt(m, &mut rng).is_ok());
            }),
            encrypt_as_owner: milliseconds(|| {
                black_box(private.encrypt(m, &mut rng).is_ok());
            }),
            decrypt: milliseconds(|| {
                black_box(private.decrypt(c).is_ok());
            }),
            decrypt_without_crt: milliseconds(|| {
                black_box(private.decrypt_without_crt(c).is_ok());
            }),
            add: milliseconds(|| {
                black_box(public.add(c, c).is_ok());
            }),
            scale_64_bits: milliseconds(|| {
                black_box(public.scale(c, w, 64).is_ok());
            }),
            combination_one_by_one: milliseconds(|| {
                let scaled = terms.iter().map(|(c, w)| public.scale_vartime(c, w));
                let scaled: Vec<Ciphertext> = scaled.flatten().collect();
                black_box(public.sum(&scaled).is_ok());
            }),
            combination: milliseconds(|| {
                let combined = || public.linear_combination(&terms, 64).is_ok();
                black_box(self.one_core.install(combined));
            }),
            combination_vartime: milliseconds(|| {
                let combined = || public.linear_combination_vartime(&terms).is_ok();
                black_box(self.one_core.install(combined));
            }),
            batch_one_core: milliseconds(|| {
                let encrypted = || public.encrypt_batch(batch, &mut rng).is_ok();
                black_box(self.one_core.install(encrypted));
            }),
            batch_all_cores: milliseconds(|| {
                black_box(public.encrypt_batch(batch, &mut rng).is_ok());
            }),
        })
    }
}

impl PaillierSection {
    fn new(key_bits: usize, t: Times) -> Self {
        let ratios = Ratios {
            encrypt_to_naive: t.encrypt_naive / t.encrypt,
            encrypt_as_owner_to_naive: t.encrypt_naive / t.encrypt_as_owner,
            encrypt_to_full_randomness: t.encrypt_full_randomness / t.encrypt,
            decrypt_to_without_crt: t.decrypt_without_crt / t.decrypt,
            combination_to_one_by_one: t.combination_one_by_one / t.combination,
            combination_vartime_to_one_by_one: t.combination_one_by_one / t.combination_vartime,
            batch_all_cores_to_one: t.batch_one_core / t.batch_all_cores,
        };
        Self {
            key_bits,
            milliseconds: t,
            ratios,
        }
    }
}

impl fmt::Display for PaillierSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (t, r) = (&self.milliseconds, &self.ratios);
        writeln!(
            f,
            "Paillier, {} bits, one core, milliseconds",
            self.key_bits
        )?;
        let rows = [
            ("encrypt, r^N by the backend", t.encrypt_naive, None),
            ("encrypt, full randomness", t.encrypt_full_randomness, None),
            ("encrypt", t.encrypt, Some((r.encrypt_to_naive, "naive"))),
            (
                "encrypt as owner",
                t.encrypt_as_owner,
                Some((r.encrypt_as_owner_to_naive, "naive")),
            ),
            ("decrypt without CRT", t.decrypt_without_crt, None),
            (
                "decrypt",
                t.decrypt,
                Some((r.decrypt_to_without_crt, "without CRT")),
            ),
            ("add", t.add, None),
            ("multiply by 64 bits", t.scale_64_bits, None),
            ("1000 terms one by one", t.combination_one_by_one, None),
            (
                "1000 terms, secret weights",
                t.combination,
                Some((r.combination_to_one_by_one, "one by one")),
            ),
            (
                "1000 terms, public weights",
                t.combination_vartime,
                Some((r.combination_vartime_to_one_by_one, "one by one")),
            ),
            ("encrypt 64, one core", t.batch_one_core, None),
            (
                "encrypt 64, all cores",
                t.batch_all_cores,
                Some((r.batch_all_cores_to_one, "one core")),
            ),
        ];
        for (name, time, ratio) in rows {
            write!(f, "  {name:<30} {time:>10.3}")?;
            if let Some((ratio, than)) = ratio {
                write!(f, "   {ratio:.1} times faster than {than}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
