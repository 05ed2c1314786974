//! The rules of leader election, with a clock that stands where the test sets it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use warmpool::controllers::leader_election::election::{Election, Lost, Step};
use warmpool::controllers::leader_election::timing::{Timing, TimingError};

/// Time on the two clocks, `seconds` after the start of the test.
#[derive(Clone, Copy)]
struct Clock {
    start: Instant,
}

impl Clock {
    fn at(self, seconds: f64) -> Instant {
        self.start + Duration::from_secs_f64(seconds)
    }

    /// The wall clock runs ten times as fast: no decision may depend on it.
    fn wall(self, seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(seconds * 10.0)
    }
}

fn clock() -> Clock {
    Clock {
        start: Instant::now(),
    }
}

fn timing() -> Timing {
    let seconds = Duration::from_secs;
    Timing::new(seconds(15), seconds(10), seconds(2)).unwrap()
}

fn candidate(identity: &str) -> Election {
    let metadata = ObjectMeta {
        name: Some("warmpool".into()),
        labels: Some(BTreeMap::from([("marked".into(), "yes".into())])),
        ..ObjectMeta::default()
    };
    Election::new(metadata, identity.into(), timing())
}

/// A lease as another process wrote it.
fn held_by(holder: &str, version: &str, renewed: Timestamp) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some("warmpool".into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(15),
            acquire_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
            renew_time: Some(MicroTime(renewed)),
            lease_transitions: Some(4),
            ..LeaseSpec::default()
        }),
    }
}

/// The lease that is to be written.
fn written(step: Step) -> Lease {
    match step {
        Step::Write(lease) => *lease,
        other => panic!("nothing is written: {other:?}"),
    }
}

fn spec(lease: &Lease) -> &LeaseSpec {
    lease.spec.as_ref().unwrap()
}

/// A candidate that has led since second 0, and the lease as it was stored then.
fn leader(clock: Clock) -> (Election, Lease) {
    let mut election = candidate("me");
    election.observe(Some(held_by("", "7", clock.wall(0.0))), clock.at(0.0));
    let mut lease = written(election.next_step(clock.at(0.0), clock.wall(0.0)));
    lease.metadata.resource_version = Some("8".into());
    election.confirm(lease.clone(), clock.at(0.0));
    (election, lease)
}

#[test]
fn a_lease_that_is_not_there_is_created() {
    let clock = clock();
    let mut election = candidate("me");
    election.observe(None, clock.at(0.0));
    let lease = written(election.next_step(clock.at(0.0), clock.wall(0.0)));
    assert_eq!(lease.metadata.resource_version, None);
    assert_eq!(lease.metadata.name.as_deref(), Some("warmpool"));
    let spec = spec(&lease);
    assert_eq!(spec.holder_identity.as_deref(), Some("me"));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    assert_eq!(spec.lease_transitions, Some(0));
    assert_eq!(spec.acquire_time, Some(MicroTime(clock.wall(0.0))));
    assert_eq!(spec.renew_time, Some(MicroTime(clock.wall(0.0))));
}

#[test]
fn a_released_lease_is_acquired_at_once() {
    let clock = clock();
    let mut election = candidate("me");
    election.observe(Some(held_by("", "7", clock.wall(0.0))), clock.at(1.0));
    let lease = written(election.next_step(clock.at(1.0), clock.wall(1.0)));
    assert_eq!(lease.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(lease.metadata.labels.as_ref().unwrap()["marked"], "yes");
    let spec = spec(&lease);
    assert_eq!(spec.lease_transitions, Some(5));
    assert_eq!(spec.acquire_time, Some(MicroTime(clock.wall(1.0))));
}

#[test]
fn anothers_lease_counts_from_when_its_record_was_seen_to_change() {
    let clock = clock();
    // Renewal times in the far past and in the far future make no difference.
    for renewed in [Timestamp::MIN, clock.wall(0.0), clock.wall(1e6)] {
        let mut election = candidate("me");
        election.observe(Some(held_by("you", "7", renewed)), clock.at(100.0));
        // (seen at, version, renewed later by this, asked at, what is left)
        let rows = [
            (100.0, "7", 0, 100.0, Some(15.0)),
            (102.0, "7", 0, 102.0, Some(13.0)),
            // A change of the object that is none of the record renews nothing.
            (104.0, "8", 0, 104.0, Some(11.0)),
            (106.0, "9", 1, 106.0, Some(15.0)),
            (120.9, "9", 1, 120.9, Some(0.1)),
            (121.0, "9", 1, 121.0, None),
        ];
        for (seen, version, later, asked, left) in rows {
            let record = renewed
                .checked_add(SignedDuration::from_secs(later))
                .unwrap_or(clock.wall(1e6));
            election.observe(Some(held_by("you", version, record)), clock.at(seen));
            match (election.next_step(clock.at(asked), clock.wall(asked)), left) {
                (Step::Wait(wait), Some(left)) => {
                    assert!((wait.as_secs_f64() - left).abs() < 0.001, "at {asked}: {wait:?}");
                }
                (Step::Write(lease), None) => {
                    assert_eq!(lease.metadata.resource_version.as_deref(), Some(version));
                    assert_eq!(spec(&lease).lease_transitions, Some(5));
                }
                (turn, _) => panic!("at {asked}: {turn:?}"),
            }
        }
    }
}

#[test]
fn the_duration_that_counts_is_the_holders() {
    let clock = clock();
    for (seconds, left) in [
        (Some(60), Some(60)),
        (Some(1), Some(1)),
        (Some(0), None),
        (Some(-5), None),
        (None, None),
    ] {
        let mut lease = held_by("you", "7", clock.wall(0.0));
        lease.spec.as_mut().unwrap().lease_duration_seconds = seconds;
        let mut election = candidate("me");
        election.observe(Some(lease), clock.at(0.0));
        match election.next_step(clock.at(0.0), clock.wall(0.0)) {
            Step::Wait(wait) => assert_eq!(Some(wait.as_secs()), left, "{seconds:?}"),
            Step::Write(_) => assert_eq!(None, left, "{seconds:?}"),
            Step::Lost(lost) => panic!("{lost}"),
        }
    }
}

#[test]
fn a_renewal_changes_only_the_time_of_renewal() {
    let clock = clock();
    let (election, stored) = leader(clock);
    let renewal = written(election.next_step(clock.at(2.0), clock.wall(2.0)));
    let mut expected = stored;
    expected.spec.as_mut().unwrap().renew_time = Some(MicroTime(clock.wall(2.0)));
    assert_eq!(renewal, expected);
}

#[test]
fn a_leader_stops_when_no_renewal_was_confirmed_for_the_renew_deadline() {
    let clock = clock();
    let (mut election, stored) = leader(clock);
    assert_eq!(election.deadline(), Some(clock.at(10.0)));
    assert!(matches!(
        election.next_step(clock.at(9.9), clock.wall(9.9)),
        Step::Write(_)
    ));
    // What counts is when the request was sent, not when its answer came.
    election.confirm(stored.clone(), clock.at(3.0));
    assert!(matches!(
        election.next_step(clock.at(12.9), clock.wall(12.9)),
        Step::Write(_)
    ));
    // To read one's own name in the lease is no renewal.
    election.observe(Some(stored), clock.at(12.95));
    let lost = Lost::Deadline(Duration::from_secs(10));
    assert_eq!(
        election.next_step(clock.at(13.0), clock.wall(13.0)),
        Step::Lost(lost)
    );
}

#[test]
fn a_leader_that_reads_another_name_has_lost() {
    let clock = clock();
    let (mut election, _) = leader(clock);
    election.observe(Some(held_by("you", "9", clock.wall(1.0))), clock.at(1.0));
    let lost = Lost::Taken("you".into());
    assert_eq!(
        election.next_step(clock.at(1.0), clock.wall(1.0)),
        Step::Lost(lost)
    );
}

#[test]
fn a_leader_whose_lease_was_deleted_creates_it_anew() {
    let clock = clock();
    let (mut election, _) = leader(clock);
    election.observe(None, clock.at(1.0));
    let lease = written(election.next_step(clock.at(1.0), clock.wall(1.0)));
    assert_eq!(lease.metadata.resource_version, None);
    assert_eq!(spec(&lease).holder_identity.as_deref(), Some("me"));
}

#[test]
fn a_lease_won_by_a_write_whose_answer_was_lost_is_kept_and_not_counted_twice() {
    let clock = clock();
    let mut election = candidate("me");
    election.observe(Some(held_by("me", "9", clock.wall(0.0))), clock.at(0.0));
    let lease = written(election.next_step(clock.at(0.0), clock.wall(1.0)));
    assert_eq!(spec(&lease).lease_transitions, Some(4));
    assert_eq!(spec(&lease).acquire_time, Some(MicroTime(Timestamp::UNIX_EPOCH)));
    assert_eq!(election.deadline(), None, "nothing is confirmed yet");
}

#[test]
fn a_released_lease_has_no_holder_and_only_the_holder_releases_it() {
    let clock = clock();
    let (mut election, stored) = leader(clock);
    let released = election.release(clock.wall(5.0)).unwrap();
    assert_eq!(released.metadata, stored.metadata);
    let given_up = spec(&released);
    assert_eq!(given_up.holder_identity.as_deref(), Some(""));
    assert_eq!(given_up.lease_duration_seconds, Some(1));
    assert_eq!(given_up.lease_transitions, spec(&stored).lease_transitions);
    assert_eq!(given_up.renew_time, Some(MicroTime(clock.wall(5.0))));
    election.observe(Some(held_by("you", "9", clock.wall(5.0))), clock.at(5.0));
    assert_eq!(election.release(clock.wall(5.0)), None);
    election.observe(None, clock.at(6.0));
    assert_eq!(election.release(clock.wall(6.0)), None);
}

#[test]
fn foreign_metadata_of_the_lease_stays() {
    let clock = clock();
    let mut lease = held_by("", "7", clock.wall(0.0));
    lease.spec.as_mut().unwrap().strategy = Some("OldestEmulationVersion".into());
    lease.metadata.labels = Some(BTreeMap::from([("theirs".into(), "too".into())]));
    let mut election = candidate("me");
    election.observe(Some(lease), clock.at(0.0));
    let taken = written(election.next_step(clock.at(0.0), clock.wall(0.0)));
    assert_eq!(spec(&taken).strategy.as_deref(), Some("OldestEmulationVersion"));
    let labels = taken.metadata.labels.unwrap();
    assert_eq!(
        (labels["theirs"].as_str(), labels["marked"].as_str()),
        ("too", "yes")
    );
}

#[test]
fn periods_that_do_not_fit_are_rejected() {
    let millis = Duration::from_millis;
    let rows = [
        ((15_000, 10_000, 2_000), None),
        ((15_000, 15_000, 2_000), Some(TimingError::Deadline)),
        ((15_000, 2_400, 2_000), Some(TimingError::Retry)),
        ((15_000, 2_401, 2_000), None),
        ((900, 500, 100), Some(TimingError::Lease)),
        ((1_500, 1_000, 100), Some(TimingError::Lease)),
        ((15_000, 10_000, 0), Some(TimingError::Period)),
    ];
    for ((lease, renew, retry), refused) in rows {
        let made = Timing::new(millis(lease), millis(renew), millis(retry));
        assert_eq!(made.err(), refused, "{lease} {renew} {retry}");
    }
}

#[test]
fn a_candidate_pauses_for_the_retry_period_and_up_to_twice_more_and_a_fifth() {
    let pauses = [(0.0, 2.0), (0.5, 3.2), (1.0, 4.4)];
    for (chance, seconds) in pauses {
        assert_eq!(timing().pause(chance), Duration::from_secs_f64(seconds));
    }
    assert!(timing().request_deadline() < timing().renew_deadline());
}

#[test]
fn a_released_lease_is_known_by_its_version_until_somebody_takes_it() {
    let clock = clock();
    let mut election = candidate("me");
    assert_eq!(election.released_version(), None);
    election.observe(Some(held_by("other", "6", clock.wall(0.0))), clock.at(0.0));
    assert_eq!(election.released_version(), None);
    election.observe(Some(held_by("", "7", clock.wall(1.0))), clock.at(1.0));
    assert_eq!(election.released_version(), Some("7"));
    // Another process led in between.
    election.observe(Some(held_by("", "9", clock.wall(4.0))), clock.at(5.0));
    assert_eq!(election.released_version(), Some("9"));
    election.observe(None, clock.at(6.0));
    assert_eq!(election.released_version(), None);
}
