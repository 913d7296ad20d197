//! Ports for daemons that are started, killed and started again where they were.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems give to whoever asks for any (from 32,768 on Linux, from 49,152 elsewhere):
/// between two starts of a daemon a connection of another test would take such a one.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
/// Ports of a process, which are apart from those of its neighbours.
const EACH: u32 = 64;

/// A port that nobody listens on, and that no test of this process got before.
pub(crate) fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() % (u32::from(COUNT) / EACH) * EACH) as u16;
    for _ in 0..COUNT {
        let place = (begin + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        if TcpListener::bind(("127.0.0.1", FIRST + place)).is_ok() {
            return Ok(FIRST + place);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}
