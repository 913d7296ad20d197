//! Private jobs against data users that cheat, come in great number or come back, over TLS sockets: noise
//! is never less than what is charged, and nobody pays for nothing.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod at_once;
mod cheats;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/hospitals.rs"]
mod hospitals;
#[path = "../common/promise.rs"]
mod promise;
mod sessions;
