//! What every guard decides alike, wherever it keeps its books: whether an answer of a job may leave, and whether
//! a budget has room for it.

use super::{AgreedPlan, MOST_TRIES, PaidByJob, Step};
use heda_dp::gdp::Cost;

/// What a guard remembers of one job's answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobState {
    /// What was set aside last for a private one, what it has paid included.
    pub agreed: Option<AgreedPlan>,
    /// What it has paid.
    pub paid: PaidByJob,
    /// The first number that was not answered.
    pub next_step: u32,
    /// How often that answer was begun.
    pub tries: u32,
    /// Whether its data user failed a check that no honest one fails.
    pub cheated: bool,
}

/// Why an answer may not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Its number was answered before.
    Answered {
        /// What was asked for.
        number: u32,
        /// The first that may be.
        next: u32,
    },
    /// It was begun too often.
    Tries,
    /// The data user failed a check.
    Cheated,
    /// The session agreed on another plan than the job has.
    OtherAgreement,
    /// The job would cost more than its plan.
    BeyondPlan,
}

impl JobState {
    /// Takes in the plan that the job's providers agree on; after the first answer it cannot change.
    pub fn agree(&mut self, plan: AgreedPlan) -> Result<(), Denied> {
        if self.next_step > 0 && self.agreed != Some(plan) {
            return Err(Denied::OtherAgreement);
        }
        self.agreed = Some(plan);
        Ok(())
    }

    /// Begins a numbered answer.
    pub fn begin(&mut self) -> Result<(), Denied> {
        self.check_honest()?;
        self.tries = self.tries.saturating_add(1);
        match self.tries > MOST_TRIES {
            true => Err(Denied::Tries),
            false => Ok(()),
        }
    }

    /// Takes in an answer of a session with this plan: its number, and what it costs. Says what the job
    /// costs a row more than before.
    pub fn answer(&mut self, step: &Step, plan: Option<AgreedPlan>) -> Result<Cost, Denied> {
        self.check_honest()?;
        if let Some(number) = step.number() {
            if number < self.next_step {
                let next = self.next_step;
                return Err(Denied::Answered { number, next });
            }
            self.next_step = number.saturating_add(1);
            self.tries = 0;
        }
        match step.cost() {
            None => Ok(Cost::ZERO),
            Some(_) => self.pay(step, plan),
        }
    }

    fn pay(&mut self, step: &Step, plan: Option<AgreedPlan>) -> Result<Cost, Denied> {
        if self.agreed != plan {
            return Err(Denied::OtherAgreement);
        }
        let plan = plan.ok_or(Denied::BeyondPlan)?;
        let before = self.paid.charged();
        self.paid = self.paid.with(step);
        let after = self.paid.charged();
        match after > plan.cost {
            true => Err(Denied::BeyondPlan),
            false => Ok(after.minus(before).unwrap_or_default()),
        }
    }

    /// Whether anything may leave at all.
    pub fn check_honest(&self) -> Result<(), Denied> {
        match self.cheated {
            true => Err(Denied::Cheated),
            false => Ok(()),
        }
    }

    /// What the job may still pay of its plan.
    pub fn unpaid(&self) -> Cost {
        let planned = self.agreed.map_or(Cost::ZERO, |agreed| agreed.cost);
        planned.minus(self.paid.charged()).unwrap_or_default()
    }
}

/// A budget of private jobs, as one of them finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrivateAccount {
    /// What all jobs may cost.
    pub most: Cost,
    /// What all jobs have paid.
    pub spent: Cost,
    /// What other jobs have set aside and not paid.
    pub held: Cost,
}

/// Why a budget has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// It is spent.
    Spent,
    /// Other jobs have set it aside, and may give it back.
    Held,
}

impl PrivateAccount {
    /// Whether a job may pay so much more.
    pub fn check(&self, more: Cost) -> Result<(), NoRoom> {
        let after = self.spent.plus(more);
        match (after > self.most, after.plus(self.held) > self.most) {
            (true, _) => Err(NoRoom::Spent),
            (false, true) => Err(NoRoom::Held),
            (false, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
