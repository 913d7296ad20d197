//! Loading a table: time by number of rows (Adult once, 4 and 16 times).

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::table::TableReader;
use std::io::Read;

/// The rows of Adult, so many times over.
fn adult(times: usize) -> String {
    let mut text = String::new();
    let read = Bundle::Adult.csv().read_to_string(&mut text);
    read.expect("the bundled file is text");
    let (header, rows) = text
        .split_once('\n')
        .expect("the bundled file has a header");
    format!("{header}\n{}", rows.repeat(times))
}

fn load(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load adult");
    group.sample_size(10);
    for coding in [Coding::Paper, Coding::Natural] {
        let schema = Bundle::Adult.schema(coding);
        for times in [1, 4, 16] {
            let text = adult(times);
            group.throughput(Throughput::Elements(32_561 * times as u64));
            let id = BenchmarkId::new(coding.to_string(), times);
            group.bench_with_input(id, &text, |bencher, text| {
                bencher.iter(|| TableReader::new(&schema).read_csv(text.as_bytes(), "adult.csv"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, load);
criterion_main!(benches);
