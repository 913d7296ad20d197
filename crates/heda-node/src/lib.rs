//! Provider daemon and data-user client, in rooms:
//!
//! - [`identity`]: who is who, and whom we trust, proved in the TLS handshake.
//! - [`wire`]: a session with a peer as frames on a stream.
//! - [`daemon`]: ports, connections, sessions, metrics; the provider as a process.
//! - [`guard`]: what a provider allows (policy) and what left it (ledger), asked at every step.
//! - [`client`]: the data user's side: connections to providers, jobs, files to resume from.
//! - [`config`]: what people write.
//! - [`system`]: clock, files, signals and logs of the machine.
//!
//! Internal to `heda`, without a promise of stability: programs use the crate `heda`.

pub mod client;
pub mod config;
pub mod daemon;
pub mod guard;
pub mod identity;
pub mod system;
pub mod wire;
