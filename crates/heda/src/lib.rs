//! Train one classifier on the data of several organisations, without showing each other the data
//! or the model.

pub mod failure;
pub mod files;
pub mod local_job;
pub mod planning;
pub mod report;
pub mod summary;
