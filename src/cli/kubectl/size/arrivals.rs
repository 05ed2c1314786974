//! Arrival times of claims, from a file or from the claims of a pool.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

/// Claims that arrived at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Timestamp,
    /// Sandboxes that were requested.
    pub count: usize,
}

/// A line of the file does not say when a claim arrived.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "line {line} of the file: {text:?} is not an arrival; write a time like 2026-01-31T12:00:00Z or a number of seconds, \
     and after it the number of sandboxes if it is not 1"
)]
pub struct ArrivalError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
}

/// Parses a file with one arrival in each line, in any order. Empty lines and lines that begin with `#` say nothing.
///
/// # Errors
/// [`ArrivalError`] for the first line that is no arrival.
pub fn parse(text: &str) -> Result<Vec<Arrival>, ArrivalError> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()));
    let spoken = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut arrivals = spoken
        .map(|(line, text)| {
            arrival(text).ok_or_else(|| ArrivalError {
                line,
                text: text.into(),
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    arrivals.sort_by_key(|arrival| arrival.at);
    Ok(arrivals)
}

fn arrival(line: &str) -> Option<Arrival> {
    let mut words = line
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty());
    let at = moment(words.next()?)?;
    let count = words.next().map_or(Some(1), |count| count.parse().ok())?;
    let is_complete = words.next().is_none() && (1..=1000).contains(&count);
    is_complete.then_some(Arrival { at, count })
}

fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    let seconds: f64 = text.parse().ok()?;
    let passed = SignedDuration::try_from_secs_f64(seconds).ok()?;
    Timestamp::UNIX_EPOCH.checked_add(passed).ok()
}
