//! `cargo run -p heda-habits --bin count [-- -v]`: the size of the product beside its goals. With `-v`
//! also every name that means two or more types, and where.

use heda_habits::size::Size;
use std::process::ExitCode;

/// A number, and the most that it may become.
struct Line {
    what: &'static str,
    now: usize,
    goal: usize,
    /// Whether the goal was reached before and must not be lost again.
    kept: bool,
}

fn main() -> ExitCode {
    let size = match Size::of_product() {
        Ok(size) => size,
        Err(words) => {
            eprintln!("count: {words}");
            return ExitCode::FAILURE;
        }
    };
    print(&size);
    if std::env::args().any(|word| word == "-v") {
        println!("\nnames that mean two or more types:");
        for (name, paths) in size.ambiguous() {
            println!("  {name}: {}", paths.join(", "));
        }
    }
    let lost = lines(&size)
        .into_iter()
        .filter(|line| line.kept && line.now > line.goal);
    let lost: Vec<&str> = lost.map(|line| line.what).collect();
    if lost.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "count: a goal that was reached is lost: {}",
        lost.join(", ")
    );
    ExitCode::FAILURE
}

fn lines(size: &Size) -> Vec<Line> {
    let line = |what, now, goal| Line {
        what,
        now,
        goal,
        kept: false,
    };
    vec![
        line("source lines", size.all_lines(), 42_000),
        line("types", size.types.len(), 650),
        line(
            "names that mean two or more types",
            size.ambiguous().len(),
            20,
        ),
        line("derived error types", size.errors, 35),
        line("uses of internal crates in heda-cli", size.internal_uses, 0),
    ]
}

fn print(size: &Size) {
    println!(
        "product, without tests, comments and the paper{:>11}{:>9}",
        "now", "goal"
    );
    for Line {
        what, now, goal, ..
    } in lines(size)
    {
        println!("{what:<46}{now:>11}{goal:>9}");
    }
    let density = 1000.0 * size.types.len() as f64 / size.all_lines().max(1) as f64;
    println!("{:<46}{density:>11.1}", "types per 1,000 lines");
    println!("\nsource lines by crate");
    for (name, lines) in &size.lines {
        println!("{name:<46}{lines:>11}");
    }
}
