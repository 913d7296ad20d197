//! Every operation of Paillier and textbook RSA at 2048 and 3072 bits, on one core and on all,
//! beside the plain ways of doing the same in the same run.
//!
//! `cargo bench -p heda-paper --bench paillier`; the crate `fast-paillier` is measured by
//! `tools/compare-fast-paillier`.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use heda_crypto::random::Randomness;
use heda_paper::hazmat_rsa::RsaPrivateKey;
use heda_paper::integer::{Integer, Natural};
use heda_paper::paillier::{Ciphertext, KeySize, Plaintext, PrivateKey};
use rayon::ThreadPoolBuilder;
use std::hint::black_box;

const TERMS: usize = 1000;
const BATCH: usize = 64;

fn paillier(c: &mut Criterion) {
    for size in [KeySize::Bits2048, KeySize::Bits3072] {
        let mut group = c.benchmark_group(format!("paillier/{}", size.bits()));
        group.sample_size(10);
        let case = Case::new(size);
        case.encryption(&mut group);
        case.decryption(&mut group);
        case.arithmetic(&mut group);
        case.combinations(&mut group);
        case.bytes(&mut group);
        for (name, threads) in [("one core", 1), ("all cores", 0)] {
            case.batches(&mut group, name, threads);
        }
        group.finish();
    }
}

struct Case {
    private: PrivateKey,
    plaintexts: Vec<Plaintext>,
    weights: Vec<Integer>,
    ciphertexts: Vec<Ciphertext>,
}

impl Case {
    fn new(size: KeySize) -> Self {
        let mut rng = Randomness::seeded(1).fork("bench", 0).expect("seeded");
        let private = PrivateKey::generate(size, &mut rng).expect("size");
        let weights: Vec<Integer> = (0..TERMS)
            .map(|_| Integer::from(Natural::random_bits(64, &mut rng)))
            .collect();
        let public = private.public();
        let plaintext = |w: &Integer| public.plaintext(w.clone()).expect("small");
        let plaintexts: Vec<Plaintext> = weights.iter().map(plaintext).collect();
        let ciphertexts = private
            .encrypt_batch(&plaintexts, &mut rng)
            .expect("one key");
        Self {
            private,
            plaintexts,
            weights,
            ciphertexts,
        }
    }

    fn encryption(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let (private, public, m) = (&self.private, self.private.public(), &self.plaintexts[0]);
        let mut rng = Randomness::seeded(2).fork("bench", 0).expect("seeded");
        let n = public.modulus();
        let (square, r) = (n * n, Natural::random_below(n, &mut rng).expect("not zero"));
        group.bench_function("encrypt/naive r^N by the backend", |b| {
            b.iter(|| black_box(r.power_by_backend(n, &square)))
        });
        group.bench_function("encrypt/full randomness", |b| {
            b.iter(|| black_box(public.encrypt_with_full_randomness(m, &mut rng)))
        });
        group.bench_function("encrypt/public key", |b| {
            b.iter(|| black_box(public.encrypt(m, &mut rng)))
        });
        group.bench_function("encrypt/owner", |b| {
            b.iter(|| black_box(private.encrypt(m, &mut rng)))
        });
        group.bench_function("rerandomise", |b| {
            b.iter(|| black_box(public.rerandomise(&self.ciphertexts[0], &mut rng)))
        });
    }

    fn decryption(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let ciphertext = &self.ciphertexts[0];
        group.bench_function("decrypt/CRT", |b| {
            b.iter(|| black_box(self.private.decrypt(ciphertext)))
        });
        group.bench_function("decrypt/without CRT", |b| {
            b.iter(|| black_box(self.private.decrypt_without_crt(ciphertext)))
        });
    }

    fn arithmetic(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let (public, x, y) = (
            self.private.public(),
            &self.ciphertexts[0],
            &self.ciphertexts[1],
        );
        let (m, w) = (&self.plaintexts[0], &self.weights[0]);
        group.bench_function("add", |b| b.iter(|| black_box(public.add(x, y))));
        group.bench_function("negate", |b| b.iter(|| black_box(public.negate(x))));
        group.bench_function("add plaintext", |b| {
            b.iter(|| black_box(public.add_plaintext(x, m)))
        });
        group.bench_function("scale 64 bits/secret", |b| {
            b.iter(|| black_box(public.scale(x, w, 64)))
        });
        group.bench_function("scale 64 bits/public", |b| {
            b.iter(|| black_box(public.scale_vartime(x, w)))
        });
    }

    fn combinations(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let public = self.private.public();
        let one_core = ThreadPoolBuilder::new().num_threads(1).build();
        let one_core = one_core.expect("a thread");
        let terms: Vec<(&Ciphertext, &Integer)> =
            self.ciphertexts.iter().zip(&self.weights).collect();
        group.bench_function("combination of 1000/one by one", |b| {
            b.iter(|| {
                let scaled = terms.iter().map(|(c, w)| public.scale_vartime(c, w));
                let scaled: Vec<Ciphertext> = scaled.flatten().collect();
                black_box(public.sum(&scaled))
            })
        });
        group.bench_function("combination of 1000/secret weights", |b| {
            b.iter(|| black_box(one_core.install(|| public.linear_combination(&terms, 64))))
        });
        group.bench_function("combination of 1000/public weights", |b| {
            b.iter(|| black_box(one_core.install(|| public.linear_combination_vartime(&terms))))
        });
    }

    fn bytes(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let public = self.private.public();
        let batch = &self.ciphertexts[..BATCH];
        let bytes = public.encode(batch).expect("one key");
        group.bench_function("encode 64", |b| b.iter(|| black_box(public.encode(batch))));
        group.bench_function("decode 64", |b| {
            b.iter(|| black_box(public.decode(&bytes, BATCH)))
        });
    }

    fn batches(&self, group: &mut BenchmarkGroup<'_, WallTime>, name: &str, threads: usize) {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("threads");
        let mut rng = Randomness::seeded(3).fork("bench", 0).expect("seeded");
        let (private, public) = (&self.private, self.private.public());
        let (plaintexts, ciphertexts) = (&self.plaintexts[..BATCH], &self.ciphertexts[..BATCH]);
        group.bench_function(format!("encrypt 64/public key, {name}"), |b| {
            b.iter(|| black_box(pool.install(|| public.encrypt_batch(plaintexts, &mut rng))))
        });
        group.bench_function(format!("encrypt 64/owner, {name}"), |b| {
            b.iter(|| black_box(pool.install(|| private.encrypt_batch(plaintexts, &mut rng))))
        });
        group.bench_function(format!("decrypt 64, {name}"), |b| {
            b.iter(|| black_box(pool.install(|| private.decrypt_batch(ciphertexts))))
        });
    }
}

fn rsa(c: &mut Criterion) {
    for size in [KeySize::Bits2048, KeySize::Bits3072] {
        let mut group = c.benchmark_group(format!("hazmat_rsa/{}", size.bits()));
        let mut rng = Randomness::seeded(4).fork("bench", 0).expect("seeded");
        let private = RsaPrivateKey::generate(size, &mut rng).expect("size");
        let public = private.public();
        let m = Natural::random_below(public.modulus(), &mut rng).expect("not zero");
        let x = public.encrypt(&m).expect("below the modulus");
        group.bench_function("encrypt", |b| b.iter(|| black_box(public.encrypt(&m))));
        group.bench_function("multiply", |b| {
            b.iter(|| black_box(public.multiply(&x, &x)))
        });
        group.bench_function("decrypt", |b| b.iter(|| black_box(private.decrypt(&x))));
        group.finish();
    }
}

fn key_generation(c: &mut Criterion) {
    let mut group = c.benchmark_group("key generation");
    group.sample_size(10);
    let mut rng = Randomness::seeded(5).fork("bench", 0).expect("seeded");
    group.bench_function("paillier/2048", |b| {
        b.iter(|| black_box(PrivateKey::generate(KeySize::Bits2048, &mut rng)))
    });
    group.finish();
}

criterion_group!(benches, paillier, rsa, key_generation);
criterion_main!(benches);
