//! Train one classifier on the data of several organisations, without showing each other the data
//! or the model. This crate is what an application embeds; the command line `heda` uses nothing else.
//!
//! ```text
//!  provider                              data user                         provider
//!
//!  CSV, Parquet                                                            CSV, Parquet
//!      │ schema: bounds, levels, classes                                       │
//!  rows in [0, 1]                                                          rows in [0, 1]
//!      │ scores ──────────── masked ───► sum ◄─── masked ────────── scores     │
//!      │                          which features are worth most                │
//!      ├─ best features stay here            best features stay here ──────────┤
//!      ├─ the others ── published with ε, once ► ◄ published, or left out ─────┤
//!      │                                                                       │
//!      │ ◄────── hidden choices ─── every iteration ─── hidden choices ──────► │
//!      └──────── padded tables ───► gradient, summed ◄───── padded tables ─────┘
//!                                            │
//!                                          Model
//! ```
//!
//! - [`Schema`]: what the columns mean, agreed on by everyone before.
//! - [`Job`]: what is to be trained and what may be shown for it, made by a builder.
//! - [`Provider`]: who holds rows, in this process or as a daemon on the network.
//! - [`DataUser`]: who trains with providers in this process.
//! - [`Client`]: who trains with providers on the network; a [`JobFile`] says job and client in one.
//! - [`Simulation`]: all of them in one process, on rows that one person may read.
//! - [`Model`]: what comes out, in a [`Trained`] with its [`summary::Summary`].
//!
//! Around them, by subject: [`schema`], [`data`], [`invitation`], [`provider`], [`forecast`], [`model`],
//! [`report`], [`identity`], [`reference`](mod@reference) and [`system`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use heda::{Bundle, Coding, DataUser, Job, Provider};
//! use std::sync::Arc;
//!
//! // The rows of a public data set, as if they were of two hospitals.
//! let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
//! let (rows, _) = Bundle::Bcwd.table(Coding::Natural)?;
//! let part = |from: usize, to: usize| rows.select_rows(&(from..to).collect::<Vec<_>>());
//! let north = Provider::from_rows("north", &schema, part(0, 350));
//! let south = Provider::from_rows("south", &schema, part(350, 699));
//!
//! let job = Job::builder("tumours", Arc::clone(&schema))
//!     .encrypt_best(4) // the others are left out: nothing is published
//!     .iterations(20)
//!     .build()?;
//! let trained = DataUser::new().train(&job, &[north, south], &mut heda::quiet)?;
//! assert!(trained.summary.accuracy > Some(0.9));
//! println!("{}", trained.summary.who_learned()); // who learned what
//! std::fs::write(std::env::temp_dir().join("model.json"), trained.model.to_json())?;
//! # Ok(())
//! # }
//! ```
//!
//! Feature `parquet`, on by default, reads tables in Parquet besides CSV.

mod client;
pub mod clock;
pub mod data;
mod data_user;
mod error;
pub mod files;
pub mod forecast;
pub mod identity;
pub mod invitation;
mod job;
mod job_file;
pub mod knowledge;
pub mod layout;
pub mod local_job;
pub mod measure;
pub mod model;
mod phases;
pub mod provider;
pub mod publishing;
pub mod reference;
pub mod report;
pub mod schema;
pub mod simulation;
pub mod summary;
pub mod system;
mod trained;
mod watch;

pub use client::{Client, OnLoss, ResultFolder};
pub use data::{Bundle, Coding, Dataset, ReadReport, TableReader};
pub use data_user::DataUser;
pub use error::{Error, ErrorKind, Remedy};
pub use heda_dp::epsilon::Epsilon;
pub use heda_dp::gdp::Delta;
pub use heda_job::description::{BadShare, Ranking, Share};
pub use heda_job::job::Progress;
pub use heda_job::proposal::{ClassWeight, Engine, Spending};
pub use heda_learn::loss::LossKind;
pub use heda_learn::optimise::{Iterations, Method as Optimiser, PenaltyPath, Settings};
pub use heda_learn::partition::{Goal, Iota};
pub use heda_learn::score::ScoringMethod as Score;
pub use heda_node::client::training::Listener;
pub use heda_node::config::PrivacyConfig;
pub use job::{Job, JobBuilder};
pub use job_file::JobFile;
pub use model::Model;
pub use phases::Phases;
pub use provider::{Provider, ProviderConfig};
pub use schema::{Schema, confirmed_schema};
pub use simulation::Simulation;
pub use system::{Randomness, note};
pub use trained::Trained;
pub use watch::{Watcher, quiet};
