//! The guard of a single process: budget, releases and answers in memory.

use super::{
    Admission, AgreedPlan, Charged, Guard, JobState, PrivateAccount, Refusal, SMALLEST_BATCH, Step,
};
use crate::description::JobDigest;
use crate::proposal::{JobId, Proposal, Spending, Split};
use crate::rows::RowSeed;
use heda_dp::account::{Accountant, Charge, Receipt, Spend};
use heda_dp::gdp::Cost;
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A guard within one process: an accountant in memory, no policy beyond the smallest batch.
#[derive(Debug)]
pub struct LocalGuard {
    data: Arc<Dataset>,
    schema: Arc<Schema>,
    row_seed: RowSeed,
    public_data: bool,
    persons: Option<Arc<[u32]>>,
    books: MemoryLedger,
}

/// Budget and releases of a guard within one process. Clones are the same books; without an
/// accountant nothing is released.
#[derive(Debug, Clone, Default)]
pub struct MemoryLedger(Arc<Mutex<MemoryEntries>>);

#[derive(Debug, Default)]
struct MemoryEntries {
    accountant: Option<Accountant>,
    jobs: HashMap<JobId, JobPage>,
    private_limit: Option<Cost>,
    releases: HashMap<JobId, Vec<u8>>,
}

/// What is known of one job.
#[derive(Debug, Clone, Default)]
struct JobPage {
    /// What was proposed, and the seed that divides the rows: both for the life of the job.
    opened: Option<(JobDigest, RowSeed)>,
    state: JobState,
}

impl MemoryEntries {
    fn state(&self, job: JobId) -> JobState {
        self.jobs
            .get(&job)
            .map(|page| page.state)
            .unwrap_or_default()
    }

    /// Whether the budget has room for what a job costs more.
    fn check_private(&self, job: JobId, more: Cost) -> Result<(), Refusal> {
        let Some(most) = self.private_limit else {
            return Ok(());
        };
        let others = self.jobs.iter().filter(|(other, _)| **other != job);
        let account = PrivateAccount {
            most,
            spent: self.spent_private(),
            held: others.map(|(_, page)| page.state.unpaid()).sum(),
        };
        let refused = |_| Refusal::PrivacyExhausted {
            spent: account.spent.plus(account.held).squared(),
            limit: most.squared(),
        };
        account.check(more).map_err(refused)
    }

    fn write(&mut self, job: JobId, state: JobState) {
        self.jobs.entry(job).or_default().state = state;
    }

    fn spent_private(&self) -> Cost {
        self.jobs
            .values()
            .map(|page| page.state.paid.charged())
            .sum()
    }
}

impl From<Accountant> for MemoryLedger {
    fn from(accountant: Accountant) -> Self {
        Self(Arc::new(Mutex::new(MemoryEntries {
            accountant: Some(accountant),
            ..MemoryEntries::default()
        })))
    }
}

impl MemoryLedger {
    fn pages(&self) -> MutexGuard<'_, MemoryEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most so much for private jobs, over all of them.
    pub fn limit_private(&self, limit: Cost) {
        self.pages().private_limit = Some(limit);
    }

    /// What private jobs have cost.
    pub fn spent_private(&self) -> Cost {
        self.pages().spent_private()
    }
}

impl LocalGuard {
    /// A guard for rows encoded by this schema.
    pub fn new(
        data: Arc<Dataset>,
        schema: Arc<Schema>,
        row_seed: RowSeed,
        books: impl Into<MemoryLedger>,
    ) -> Self {
        Self {
            data,
            schema,
            row_seed,
            public_data: false,
            persons: None,
            books: books.into(),
        }
    }

    /// States whose row each one is, by number: private jobs then protect the person.
    pub fn of_persons(mut self, persons: impl Into<Arc<[u32]>>) -> Self {
        self.persons = Some(persons.into());
        self
    }

    #[cfg(test)]
    pub(super) fn plan_of(&self, job: JobId) -> Option<AgreedPlan> {
        self.books.pages().state(job).agreed
    }

    /// States that the data are public, so that ε may be read from them.
    pub fn of_public_data(mut self) -> Self {
        self.public_data = true;
        self
    }
}

impl Guard for LocalGuard {
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal> {
        if proposal.job.spending() == Some(&Spending::Automatic) && !self.public_data {
            return Err(Refusal::AutomaticEpsilon);
        }
        let digest = proposal.job.digest().map_err(Refusal::rule)?;
        let mut books = self.books.pages();
        let page = books.jobs.entry(proposal.id).or_default();
        let opened = || (digest, self.row_seed.clone());
        let (known, row_seed) = page.opened.get_or_insert_with(opened);
        if *known != digest {
            return Err(Refusal::OtherProposal);
        }
        Ok(Admission {
            data: Arc::clone(&self.data),
            persons: self.persons.clone(),
            schema: Arc::clone(&self.schema),
            row_seed: row_seed.clone(),
            minimum_batch: SMALLEST_BATCH,
            minimum_held_out: SMALLEST_BATCH,
            ledger: None,
            next_step: page.state.next_step,
            trusted_most: u32::MAX,
        })
    }

    fn agree_split(&self, _job: JobId, _split: &Split) -> Result<(), Refusal> {
        Ok(())
    }

    fn release(
        &self,
        job: JobId,
        charge: Charge,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let mut books = self.books.pages();
        if let Some(stored) = books.releases.get(&job) {
            return Ok(stored.clone());
        }
        let accountant = books.accountant.as_mut().ok_or(Refusal::NoBudget)?;
        let receipt = accountant.spend(charge)?;
        let released = make(receipt)?;
        books.releases.insert(job, released.clone());
        Ok(released)
    }

    fn reserve(&self, job: JobId, plan: AgreedPlan) -> Result<(), Refusal> {
        let mut books = self.books.pages();
        let mut state = books.state(job);
        state.agree(plan)?;
        books.check_private(job, state.unpaid())?;
        books.write(job, state);
        Ok(())
    }

    fn begin(&self, job: JobId, step: &Step) -> Result<(), Refusal> {
        let mut books = self.books.pages();
        let state = &mut books.jobs.entry(job).or_default().state;
        let begun = match step.number() {
            Some(_) => state.begin(),
            None => state.check_honest(),
        };
        Ok(begun?)
    }

    fn record(&self, job: JobId, step: &Step, plan: Option<AgreedPlan>) -> Result<(), Refusal> {
        let mut books = self.books.pages();
        let mut state = books.state(job);
        let more = state.answer(step, plan)?;
        if step.cost().is_some() {
            books.check_private(job, more)?;
        }
        books.write(job, state);
        Ok(())
    }

    fn end_cheating(&self, job: JobId) -> Result<(), Refusal> {
        self.books
            .pages()
            .jobs
            .entry(job)
            .or_default()
            .state
            .cheated = true;
        Ok(())
    }

    fn charged(&self, job: JobId) -> Result<Charged, Refusal> {
        let books = self.books.pages();
        Ok(Charged {
            job: books.state(job).paid.charged(),
            left: None,
        })
    }
}
