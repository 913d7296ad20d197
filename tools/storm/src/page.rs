//! `docs/reliability.md`, written from what happened.

use crate::tally::Tally;

/// The page.
pub(crate) fn page(tally: &Tally, timed: &[String], seed: u64) -> String {
    let failures = match tally.failures() {
        0 => "There were no failures.\n".to_owned(),
        _ => format!("Failures:\n\n{}", tally.failures_text()),
    };
    let memory = tally.measures.join("\n");
    let timed = match timed {
        [] => String::new(),
        lines => format!(
            "## What a running job loses\n\n\
             Seconds of a job of 40 iterations with two providers, the middle of several: while one of \
             them is attacked, and while a third daemon on the same machine is, which takes the same \
             processors away; attacks in turn. The attackers are strangers, or a data user that is \
             allowed in and not the one of the job.\n\n\
             | attack | another daemon is hit, s | its provider is hit, s | difference |\n\
             | --- | --- | --- | --- |\n{}\n",
            lines.join("\n")
        ),
    };
    format!(
        "# Reliability\n\n\
         What Heda does when processes are killed, disks are full, lines break and peers are hostile. \
         This page is written by `heda-storm`, which runs real processes of `heda` on one machine:\n\n\
         ```text\n\
         cargo build -p heda-cli -p heda-storm\n\
         target/debug/heda-storm --seed {seed} --page docs/reliability.md\n\
         ```\n\n\
         With `--quick` it takes about a minute and runs in CI. Kills at exact system calls and full \
         disks need a C compiler and Linux: a small library is loaded into the process \
         (`tools/storm/src/shim.c`).\n\n\
         ## What happened\n\n{}\n{failures}\n\
         A failure is any of: a process that panics or ends with an exit code that is not documented; \
         a model that differs from the undisturbed one; a release that is missing in a ledger or paid \
         for twice; a file that is left over; a lost ledger that somebody goes on with; a daemon that \
         takes more memory than its working set and 100 MB, or ten seconds later more than 10 % and 1 MB over \
         what it had before; a job that takes a tenth longer.\n\n\
         ## Memory of a daemon\n\n\
         Resident megabytes before an attack (after a few sessions and a moment of the same attack), \
         at most during it, and ten seconds after it.\n\n\
         | attack | connections or frames | before | during | after |\n\
         | --- | --- | --- | --- | --- |\n{memory}\n\n{timed}",
        tally.table()
    )
}
