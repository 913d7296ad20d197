//! The numbers behind the paper's figures 4 and 5, as Markdown:
//! `cargo run --release -p heda-dp --example figures`.

#[allow(dead_code, clippy::unwrap_used)]
#[path = "../tests/common/mod.rs"]
mod common;

use common::{Compared, scaled};
use heda_dp::auto::automatic_epsilon;
use heda_dp::cluster::default_size;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sets = [
        ("bcwd", 16, 10),
        ("adult", 127, 3),
        ("crx", 18, 10),
        ("car", 29, 10),
    ];
    for (name, paper, runs) in sets {
        let points = scaled(name);
        let automatic = automatic_epsilon(&points)?;
        println!("{name}: {} x {}", points.rows(), points.width());
        println!(
            "claimed epsilon {}, sum {}",
            automatic.claimed(),
            automatic.composed()
        );
        println!("\n| k | SSE ima | SSE imdav | SSE standard | RL ima | RL imdav | RL standard |");
        println!("|---|---|---|---|---|---|---|");
        let standard = Compared::Standard.score(&points, runs);
        let best = default_size(points.rows());
        let mut sizes = vec![
            paper / 2,
            paper,
            best,
            best * 5 / 4,
            best * 3 / 2,
            best * 2,
            best * 4,
        ];
        sizes.dedup();
        for k in sizes {
            let ima = Compared::Ima(k).score(&points, runs);
            let imdav = Compared::Imdav(k).score(&points, runs);
            println!(
                "| {k} | {:.1} | {:.1} | {:.1} | {:.5} | {:.5} | {:.5} |",
                ima.sse, imdav.sse, standard.sse, ima.linkage, imdav.linkage, standard.linkage
            );
        }
        println!();
    }
    Ok(())
}
