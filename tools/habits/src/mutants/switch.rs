//! Which mutant of a program is switched on. This file is put into every crate with mutants, as it is.
//!
//! The variable `HEDA_MUTANT` holds the number of a mutant, or `record`: then none is on, and the number of
//! every mutant that is reached is added to the file that `HEDA_MUTANTS_REACHED` names.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// No mutant has this number.
const NONE: u32 = 0;
/// Reached mutants are written down.
const RECORD: u32 = u32::MAX - 1;
/// The variable was not read yet.
const UNREAD: u32 = u32::MAX;
/// Numbers are smaller.
const MOST: usize = 1 << 16;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// Whether the mutant with this number is on.
#[inline(always)]
pub(crate) fn on(number: u32) -> bool {
    let active = ACTIVE.load(Ordering::Relaxed);
    active == number || (active >= RECORD && rarely(number, active))
}

#[cold]
#[inline(never)]
fn rarely(number: u32, active: u32) -> bool {
    if active == UNREAD {
        ACTIVE.store(chosen(), Ordering::Relaxed);
        return on(number);
    }
    if !REACHED[number as usize % MOST].swap(true, Ordering::Relaxed) {
        record(number);
    }
    false
}

fn chosen() -> u32 {
    match std::env::var("HEDA_MUTANT").as_deref() {
        Ok("record") => RECORD,
        Ok(number) => number.parse().unwrap_or(NONE),
        Err(_) => NONE,
    }
}

/// Adds a number to the file, in one write, because other processes may add to it too.
fn record(number: u32) {
    let Some(path) = std::env::var_os("HEDA_MUTANTS_REACHED") else {
        return;
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
    // Without the record the mutant would pass for one that no test reaches.
    assert!(written.is_ok(), "HEDA_MUTANTS_REACHED cannot be written");
}
