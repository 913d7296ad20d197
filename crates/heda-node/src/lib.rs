//! Provider daemon and data-user client: identity, wire, policy, ledger.
//!
//! - [`identity`], [`fingerprint`], [`trust`]: who is who, proved in the TLS handshake.
//! - [`frame`], [`wire`], [`service`], [`listener`], [`daemon`], [`client`]: sessions over gRPC.
//! - [`session`]: the seam between the network and the training job.
//! - [`config`], [`policy`], [`check`]: what people write, and what a provider allows.
//! - [`ledger`], [`backup`]: what left the house, durably, before it leaves.
//! - [`house`], [`serve`]: a provider that trains; [`training`], [`state`]: a data user that does.

pub mod backup;
pub mod check;
pub mod client;
pub mod clock;
pub mod config;
pub mod daemon;
mod dates;
pub mod files;
pub mod fingerprint;
pub mod frame;
pub mod house;
pub mod identity;
pub mod ledger;
pub mod listener;
pub mod logging;
pub mod metrics;
pub mod policy;
pub mod provider_data;
pub mod serve;
pub mod service;
pub mod session;
pub mod state;
pub mod stop;
pub mod training;
pub mod trust;
pub mod wire;
