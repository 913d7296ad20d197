//! Jobs that choose their penalty.

use super::*;

/// Every evaluation that chooses is counted as any other one, before it is answered; and halves of
/// the held-out rows that are too small are refused before anything leaves.
#[test]
fn what_a_chosen_penalty_reveals_is_counted() {
    let guard = Guard::new("iterations_per_day = 27\nheld_out_rows_min = 20");
    let daemon = guard.serve();
    let user = User::new(guard.users[0].clone());
    let chosen = spec(1, &["clump_thickness", "bare_nuclei"]);
    let chosen = chosen.with(|raw| raw.training.path = Some(PenaltyPath::usual()));
    let chosen = chosen.unwrap();
    let (stop_after, kept) = (5, None);
    let mut keeping = Keeping { stop_after, kept };
    let stopped = train(&user, &daemon, &chosen, &mut keeping, None).unwrap_err();
    assert!(matches!(stopped, JobError::Interrupted), "{stopped}");
    let job = || guard.jobs().swap_remove(0);
    // The first penalty with its four gradients and its evaluation, and a gradient of the next.
    assert_eq!((job().iterations, job().evaluations), (5, 1));
    keeping.stop_after = u32::MAX;
    let resume = keeping.kept.clone();
    let outcome = train(&user, &daemon, &chosen, &mut keeping, resume).unwrap();
    assert_eq!((job().iterations, job().evaluations), (5 * 4, 5 + 1));
    assert_eq!(guard.learned(), 6 + 20 * 3 + 6 * 28);
    assert_eq!(outcome.revealed.count_numbers, 6 * 28);
    // 1 for the sums, 20 and 6: that was the day.
    let other = JobSpec {
        id: fresh_job_id(&Randomness::seeded(2)).unwrap(),
        ..chosen.clone()
    };
    let before = guard.learned();
    let refused = train(&user, &daemon, &other, &mut Quiet, None).unwrap_err();
    assert!(refused.to_string().contains("day"), "{refused}");
    let few = JobSpec {
        id: fresh_job_id(&Randomness::seeded(3)).unwrap(),
        ..chosen.with(|raw| raw.held_out = 0.05).unwrap()
    };
    let refused = train(&user, &daemon, &few, &mut Quiet, None).unwrap_err();
    assert!(
        refused.to_string().contains("choose the penalty"),
        "{refused}"
    );
    assert_eq!(guard.learned(), before);
}
