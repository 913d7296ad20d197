//! Every key of the files that people write or exchange, as a page and as JSON schemas.

pub use heda_node::config::files;
