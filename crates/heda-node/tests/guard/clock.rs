//! A clock that is moved back.

use super::*;
use heda_node::system::clock::Timestamp;

#[test]
fn a_clock_moved_back_does_not_give_the_day_again() {
    let guard = Guard::new("iterations_per_day = 8");
    let daemon = guard.serve();
    let user = User::new(guard.users[0].clone());
    let encrypt = ["clump_thickness", "bare_nuclei"];
    train(&user, &daemon, &spec(1, &encrypt), &mut Quiet, None).unwrap();
    guard.clock.set(Timestamp(now().0 - 3 * 86_400));
    let mut keeping = Keeping {
        stop_after: u32::MAX,
        kept: None,
    };
    let refused = train(&user, &daemon, &spec(2, &encrypt), &mut keeping, None).unwrap_err();
    assert!(
        refused.to_string().contains("had 8 iterations today"),
        "{refused}"
    );
    let jobs = guard.jobs();
    let left: u64 = jobs
        .iter()
        .map(|job| job.iterations + job.evaluations + job.rankings)
        .sum();
    assert_eq!(left, 8);
    guard.clock.set(Timestamp(now().0 + 86_400));
    train(&user, &daemon, &spec(2, &encrypt), &mut Quiet, keeping.kept).unwrap();
}
