//! Logs failed requests: those that fail alike share one line a minute, with one example and the number of the others.

use crate::model::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tracing::Level;
use tracing::field::display;

/// For how long the log is silent on failures like one that it has just named.
const SILENCE: Duration = Duration::from_secs(60);
/// Most messages of one kind of request with lines of their own; the others share one. Some hold what differs each time.
const MESSAGES: usize = 5;

/// A request that failed.
#[derive(Clone, Debug)]
pub struct FailedRequest {
    /// Severity of the line: `ERROR` or `WARN`.
    pub level: Level,
    /// What that means, for a person.
    pub what: &'static str,
    /// Verb in the terms of RBAC.
    pub verb: &'static str,
    /// Resource in the terms of RBAC.
    pub resource: &'static str,
    /// The object that the request is about. The line has it as `object`, or as `pod` beside a `claim`.
    pub object: Key,
    /// The claim that a pod was to be bound to.
    pub claim: Option<Key>,
    /// The API server's message, or why there was no answer.
    pub error: String,
}

/// Failures that share lines.
#[derive(Clone, Debug)]
struct Alike {
    silent_until: Instant,
    /// The last failure since the last line.
    example: Option<FailedRequest>,
    /// The objects that failed since the last line.
    objects: BTreeSet<Key>,
}

/// Request and message of failures that share lines.
type Kind = (&'static str, &'static str, &'static str, String);

/// A line of the log: a failure, and how many other objects failed alike.
type Line = (FailedRequest, usize);

/// The failures that the log is silent on.
#[derive(Debug, Default)]
struct Failures(BTreeMap<Kind, Alike>);

/// Static, because the process has one log.
static FAILURES: Mutex<Failures> = Mutex::new(Failures(BTreeMap::new()));

/// Logs a failure at once, unless one like it was logged within a minute: then the next line counts it.
pub(crate) fn log(failed: FailedRequest) {
    let lines = lock().note(failed, Instant::now());
    lines.iter().for_each(write);
}

/// Logs the failures that the log was silent on for a minute. Call it periodically: failures may have stopped.
pub(crate) fn log_counted() {
    let lines = lock().counted(Instant::now());
    lines.iter().for_each(write);
}

fn lock() -> MutexGuard<'static, Failures> {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Failures {
    /// A request failed at `now`. Returns the lines to write.
    fn note(&mut self, failed: FailedRequest, now: Instant) -> Vec<Line> {
        let mut lines = self.counted(now);
        let kind = self.kind(&failed);
        if let Some(alike) = self.0.get_mut(&kind) {
            alike.objects.insert(failed.object.clone());
            alike.example = Some(failed);
            return lines;
        }
        let alike = Alike {
            silent_until: now + SILENCE,
            example: None,
            objects: BTreeSet::new(),
        };
        self.0.insert(kind, alike);
        lines.push((failed, 0));
        lines
    }

    /// The lines that are due at `now`. A kind without a failure for a minute is forgotten, and its next failure is
    /// logged at once.
    fn counted(&mut self, now: Instant) -> Vec<Line> {
        let mut lines = Vec::new();
        self.0.retain(|_, alike| {
            if alike.silent_until > now {
                return true;
            }
            let Some(example) = alike.example.take() else {
                return false;
            };
            let objects = std::mem::take(&mut alike.objects);
            lines.push((example, objects.len().saturating_sub(1)));
            alike.silent_until = now + SILENCE;
            true
        });
        lines
    }

    /// The kind of a failure: its message without the names of the object and the claim, which differ.
    fn kind(&self, failed: &FailedRequest) -> Kind {
        let names = [Some(&failed.object), failed.claim.as_ref()];
        let names = names.into_iter().flatten();
        let message = names.fold(failed.error.clone(), |message, key| {
            message.replace(&*key.name, "").replace(&*key.namespace, "")
        });
        let of = |message| (failed.verb, failed.resource, failed.what, message);
        let kind = of(message);
        let alike = self.0.keys().filter(|(verb, resource, what, _)| {
            (*verb, *resource, *what) == (failed.verb, failed.resource, failed.what)
        });
        if !self.0.contains_key(&kind) && alike.count() >= MESSAGES {
            return of(String::new());
        }
        kind
    }
}

fn write((failed, others): &Line) {
    let FailedRequest {
        level,
        what,
        verb,
        resource,
        object,
        claim,
        error,
    } = failed;
    let (claim, is_binding) = (claim.as_ref().map(display), claim.is_some());
    let pod = is_binding.then(|| display(object));
    let object = (!is_binding).then(|| display(object));
    let more = (*others > 0).then_some(*others);
    let counted = more.map_or_else(String::new, |more| format!(" (and {more} more)"));
    // The level of a line is part of its call site.
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                verb,
                resource,
                object,
                claim,
                pod,
                error,
                more,
                "{what}{counted}; logged at most once a minute"
            )
        };
    }
    match *level {
        Level::ERROR => line!(error),
        _ => line!(warn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(name: &str, error: String) -> FailedRequest {
        FailedRequest {
            level: Level::WARN,
            what: "the claim could not be deleted",
            verb: "delete",
            resource: "sandboxclaims",
            object: Key::new("team", name),
            claim: None,
            error,
        }
    }

    /// The lines as the names of their objects and the numbers of others.
    fn lines(lines: &[Line]) -> Vec<(&str, usize)> {
        lines
            .iter()
            .map(|(failed, others)| (failed.object.name.as_str(), *others))
            .collect()
    }

    #[test]
    fn a_thousand_failures_that_are_alike_are_one_line_at_once_and_one_a_minute_later() {
        let (mut failures, begin) = (Failures::default(), Instant::now());
        let mut written = Vec::new();
        for number in 0..1000 {
            let name = format!("run-{number}");
            let at = begin + Duration::from_millis(number);
            written.extend(failures.note(failed(&name, format!("claim \"{name}\" may not go")), at));
        }
        assert_eq!(lines(&written), [("run-0", 0)]);
        assert_eq!(lines(&failures.counted(begin + SILENCE)), [("run-999", 998)]);
        assert!(
            failures.counted(begin + SILENCE + SILENCE).is_empty(),
            "they have stopped"
        );
        let again = failures.note(
            failed("run-5", "claim \"run-5\" may not go".into()),
            begin + SILENCE + SILENCE,
        );
        assert_eq!(
            lines(&again),
            [("run-5", 0)],
            "the first of a kind is logged at once"
        );
    }

    #[test]
    fn one_object_that_keeps_failing_is_a_line_a_minute_without_a_number() {
        let (mut failures, begin) = (Failures::default(), Instant::now());
        let mut written = Vec::new();
        for second in 0..=120 {
            let at = begin + Duration::from_secs(second);
            written.extend(failures.note(failed("run", "no".into()), at));
        }
        assert_eq!(lines(&written), [("run", 0); 3]);
    }

    #[test]
    fn messages_that_always_differ_share_a_line_in_the_end() {
        let (mut failures, begin) = (Failures::default(), Instant::now());
        let mut written = Vec::new();
        for number in 0..1000 {
            written.extend(failures.note(failed("run", format!("request {number} failed")), begin));
        }
        assert_eq!(written.len(), MESSAGES + 1);
    }
}
