//! Ways in which a store loses or replaces its ledger. Each must be noticed by a daemon that starts,
//! by one that runs, and by every command that looks, before anything is paid for again.

use crate::tally::{Tally, Trouble};
use crate::world::{Job, PROVIDERS, World};
use std::path::{Path, PathBuf};

const LOSSES: &str = "ledgers lost or replaced that must be noticed";
const PLACE: usize = 2;
const TERMS: &str = "engine = \"resident\"\niota = 5\nepsilon = 0.1\niterations = 3";

type Lose = fn(&Path, &Path) -> std::io::Result<()>;

/// What happens to a store; the second folder is a copy from before the last job.
const WAYS: [(&str, Lose); 7] = [
    ("the store is deleted", |store, _| {
        std::fs::remove_dir_all(store)
    }),
    ("the ledger is deleted, the key stays", |store, _| {
        remove(store)
    }),
    ("the ledger is emptied", |store, _| {
        remove(store)?;
        std::fs::write(store.join("ledger.sqlite"), b"")
    }),
    ("the ledger is emptied in place", |store, _| {
        let file = std::fs::File::options();
        let file = file.clone().write(true).open(store.join("ledger.sqlite"))?;
        file.set_len(0)?;
        let _ = std::fs::remove_file(store.join("ledger.sqlite-wal"));
        Ok(())
    }),
    ("an old copy takes its place", |store, old| {
        remove(store)?;
        copy(old, store)
    }),
    ("an old copy is written over it", |store, old| {
        let _ = std::fs::remove_file(store.join("ledger.sqlite-wal"));
        let content = std::fs::read(old.join("ledger.sqlite"))?;
        std::fs::write(store.join("ledger.sqlite"), content)
    }),
    ("half of the file is overwritten", |store, _| {
        let path = store.join("ledger.sqlite");
        let mut content = std::fs::read(&path)?;
        let half = content.len() / 2;
        content[half..].fill(0x5a);
        let _ = std::fs::remove_file(store.join("ledger.sqlite-wal"));
        std::fs::write(path, content)
    }),
];

fn remove(store: &Path) -> std::io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(store.join(format!("ledger.sqlite{suffix}")));
    }
    Ok(())
}

/// All files of a folder.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A provider with a history, and copies of it.
struct Scene<'a> {
    world: &'a World,
    store: PathBuf,
    old: PathBuf,
    whole: PathBuf,
    seed: u64,
}

impl Scene<'_> {
    /// Whether a job is paid for and finished.
    fn pays(&mut self) -> Result<bool, Trouble> {
        self.seed += 1;
        self.world.write_job(&Job {
            seed: self.seed,
            terms: TERMS,
            providers: &[(PLACE, self.world.port(PLACE))],
            loss_seconds: 1,
        })?;
        let mut run = self.world.train(self.seed, &[])?;
        Ok(run.wait()?.success())
    }

    /// The store as it was after the last job that counts.
    fn restore(&self) -> Result<(), Trouble> {
        let _ = std::fs::remove_dir_all(&self.store);
        Ok(copy(&self.whole, &self.store)?)
    }
}

/// Every way, at a daemon that runs and at one that starts.
pub(crate) fn run(world: &World, tally: &mut Tally) -> Result<(), Trouble> {
    let name = PROVIDERS[PLACE];
    let mut scene = Scene {
        world,
        store: world.path(&format!("{name}/store")),
        old: world.path("old-store"),
        whole: world.path("whole-store"),
        seed: 900_000,
    };
    let daemon = world.serve_well(PLACE)?;
    scene.pays()?;
    daemon.terminate()?;
    copy(&scene.store, &scene.old)?;
    let daemon = world.serve_well(PLACE)?;
    scene.pays()?;
    daemon.terminate()?;
    copy(&scene.store, &scene.whole)?;
    let config = format!("{name}/provider.toml");
    for (way, lose) in WAYS {
        scene.restore()?;
        let daemon = world.serve_well(PLACE)?;
        // The clock of a file system may count in hundredths of a second.
        std::thread::sleep(std::time::Duration::from_millis(30));
        lose(&scene.store, &scene.old)?;
        tally.count(LOSSES, 1);
        let paid = scene.pays()?;
        tally.expect(LOSSES, !paid, || format!("{way}: a running daemon went on"));
        drop(daemon);
        scene.restore()?;
        lose(&scene.store, &scene.old)?;
        for command in ["check", "status", "budget"] {
            tally.count(LOSSES, 1);
            let looked = world.run(&["provider", command, "--config", &config]);
            tally.expect(LOSSES, looked.is_err(), || {
                format!("{way}: {command} is content")
            });
        }
        tally.count(LOSSES, 1);
        let served = world.serve(PLACE, &[])?;
        tally.expect(LOSSES, served.is_none(), || {
            format!("{way}: a daemon started")
        });
    }
    scene.restore()?;
    drop(world.serve_well(PLACE)?);
    Ok(())
}
