//! A data user trains with hospitals that have answered its invitation: `cargo run --release --example
//! data_user`, in the folder that `heda invite` made, with the answers in its folder `answers`.

use heda::{Client, Error, Job, Progress, ResultFolder, schema};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn main() -> Result<(), Error> {
    let (_, schema) = schema::read(Path::new("schema.toml"))?;
    let job = Job::builder(schema.name().to_owned(), schema)
        .iterations(15)
        .build()?;
    let client = Client::new("identity").answered(Path::new("answers"))?;
    let show = Arc::new(|progress: Progress| eprintln!("{progress:?}"));
    let trained = client.train(&job, &ResultFolder::new(Path::new("result")), show)?;
    println!("{}", trained.text());
    Ok(())
}
