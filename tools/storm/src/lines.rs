//! A line between data user and provider on which bytes are flipped and connections cut. TLS must
//! find every flip; the job fails in words or comes to the same model.

use crate::chance::Chance;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A line and what it did.
pub(crate) struct Line {
    pub(crate) port: u16,
    pub(crate) strikes: Arc<AtomicU64>,
}

/// What happens on a line, once a connection and not on every one.
#[derive(Debug, Clone, Copy)]
struct Strike {
    after: usize,
    flip: bool,
}

impl Line {
    /// A line to a port. Most connections are struck somewhere in their first bytes; after `most`
    /// of them the line is sound, so that jobs come to an end.
    pub(crate) fn start(target: u16, seed: u64, most: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let strikes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&strikes);
        let mut chance = Chance::new(seed);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else {
                    continue;
                };
                let strike = (counted.load(Relaxed) < most).then(|| Strike {
                    after: match chance.below(3) {
                        0 => chance.below(1500),
                        1 => chance.below(60_000),
                        _ => chance.below(3_000_000),
                    },
                    flip: chance.below(2) == 0,
                });
                let there = chance.below(2) == 0;
                let (Ok(client2), Ok(server2)) = (client.try_clone(), server.try_clone()) else {
                    continue;
                };
                let (one, two) = (Arc::clone(&counted), Arc::clone(&counted));
                let (first, second) = match there {
                    true => (strike, None),
                    false => (None, strike),
                };
                std::thread::spawn(move || carry(client, server, first, &one));
                std::thread::spawn(move || carry(server2, client2, second, &two));
            }
        });
        Ok(Self { port, strikes })
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, strike: Option<Strike>, strikes: &AtomicU64) {
    let mut seen = 0;
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let mut piece = &mut buffer[..read];
        if let Some(strike) = strike
            && (seen..seen + read).contains(&strike.after)
        {
            strikes.fetch_add(1, Relaxed);
            let place = strike.after - seen;
            match strike.flip {
                true => piece[place] ^= 0x10,
                false => piece = &mut piece[..place],
            }
        }
        let cut = piece.len() < read;
        if to.write_all(piece).is_err() || cut {
            break;
        }
        seen += read;
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
