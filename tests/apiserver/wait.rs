//! Waits for a condition, and reports the last state seen.

use std::thread::sleep;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A look at the API server takes a few milliseconds. On a busy machine it takes longer, and so does what is waited for.
const LONGEST_LOOK: Duration = Duration::from_millis(50);
/// However busy the machine is, a wait ends after so many times its limit.
const LONGEST_WAIT: u32 = 4;

/// Calls `check` until it succeeds. Its error is the state it saw; after `seconds` that becomes the error.
///
/// The seconds are those of the test's own clock: each call counts for [`LONGEST_LOOK`] at most and each pause for its length, so
/// a machine that is busy with something else has looked as often as an idle one when the wait ends.
pub fn until<T>(
    condition: &str,
    seconds: u64,
    mut check: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let limit = Duration::from_secs(seconds);
    let began = Instant::now();
    let (mut waited, mut pause) = (Duration::ZERO, FIRST_PAUSE);
    loop {
        let look = Instant::now();
        let seen = match check() {
            Ok(found) => return Ok(found),
            Err(seen) => seen,
        };
        waited += look.elapsed().min(LONGEST_LOOK);
        if waited >= limit || began.elapsed() >= limit * LONGEST_WAIT {
            return Err(format!("waited {seconds} s until {condition}; last seen: {seen}"));
        }
        sleep(pause);
        waited += pause;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// Calls `check` for `seconds`, and fails as soon as it fails. However long a call hangs, there are as many calls as seconds.
pub fn throughout(
    condition: &str,
    seconds: u64,
    mut check: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut calls = 0;
    while calls < seconds || Instant::now() < end {
        check().map_err(|seen| format!("for {seconds} s, {condition}; but: {seen}"))?;
        calls += 1;
        sleep(LONGEST_PAUSE);
    }
    Ok(())
}

/// `Ok` where the condition holds, else what was seen.
pub fn ensure(holds: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(seen()) }
}
