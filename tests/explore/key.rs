//! When two worlds are the same: everything that decides what may happen next, written down with versions, UIDs and
//! names of pods replaced by their ranks, since nothing but their order matters.

use crate::operator::{InFlight, Operator};
use crate::state::State;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use warmpool::cache::snapshot::RevisionProgress;
use warmpool::model::Key;
use warmpool::model::request::Request;
use warmpool::planner::pool_snapshot;
use warmpool::planner::status_due;

pub fn of(state: &State) -> u128 {
    let mut text = String::with_capacity(32 * 1024);
    write(&mut text, state).unwrap();
    hash_ranked(&text)
}

fn write(text: &mut String, state: &State) -> std::fmt::Result {
    for (kind, object) in state.api_server.all() {
        writeln!(text, "{kind:?} {}", object.text)?;
    }
    for request in &state.late {
        writeln!(text, "late {request:?}")?;
    }
    let ghost = &state.ghost;
    writeln!(
        text,
        "{:?} {} {} {:?}",
        state.left,
        state.milliseconds,
        state.api_server.quota,
        (ghost.late, &ghost.published, &ghost.bound)
    )?;
    state
        .operators
        .iter()
        .try_for_each(|operator| write_operator(text, state, operator))
}

fn write_operator(text: &mut String, state: &State, operator: &Operator) -> std::fmt::Result {
    let wakes: Vec<_> = operator.wakes().collect();
    writeln!(text, "operator {:?} {wakes:?}", operator.due)?;
    for (kind, events) in &operator.inbox {
        writeln!(text, "to come {kind:?}")?;
        for event in events {
            writeln!(text, "{} {}", event.gone, event.object.text)?;
        }
    }
    write_index(text, state, operator)?;
    let in_flight = operator
        .in_flight
        .iter()
        .map(|in_flight| describe(state, in_flight));
    let mut in_flight: Vec<_> = in_flight.collect();
    in_flight.sort();
    writeln!(text, "in flight {}", in_flight.join("\n"))?;
    if state.scene.strict {
        let bindings = operator.failed.iter().map(|failed| bindings_since(state, failed));
        writeln!(text, "failed {:?}", bindings.collect::<Vec<_>>())?;
    }
    Ok(())
}

fn describe(state: &State, in_flight: &InFlight) -> String {
    let request = without("sequence: ", &format!("{:?}", in_flight.request()));
    let bindings = if state.scene.strict {
        bindings_since(state, in_flight)
    } else {
        0
    };
    // Only where a pod is missing it matters which versions the watch had shown.
    let before = format!("{:?}", in_flight.before);
    let before = match in_flight.request() {
        Request::ReadPod(_) => before,
        _ => without("version: ", &before),
    };
    format!("{request} {bindings} {before} {:?}", in_flight.outcome)
}

/// Bindings since the request was decided on.
fn bindings_since(state: &State, in_flight: &InFlight) -> usize {
    state.ghost.bindings - in_flight.decision.bindings
}

fn write_index(text: &mut String, state: &State, operator: &Operator) -> std::fmt::Result {
    let index = &operator.index;
    let keys = index.claim_keys();
    let mut claims: Vec<_> = keys.iter().filter_map(|key| index.claim(key)).collect();
    claims.sort_by_key(|claim| claim.sequence);
    for claim in claims {
        let memory = index.claim_memory(&claim).cloned().unwrap_or_default();
        let claim = without("sequence: ", &format!("{claim:?}"));
        writeln!(text, "{claim} {memory:?}")?;
    }
    for (pool, _) in &state.scene.pools {
        let key = Key::new("default", *pool);
        let Some(snapshot) = pool_snapshot(index, &key, state.now(), 0) else {
            continue;
        };
        writeln!(text, "{:?}", snapshot.pool)?;
        if !state.scene.nodes.is_empty() {
            writeln!(text, "{:?}", snapshot.nodes)?;
        }
        writeln!(text, "{:?} {:?}", snapshot.failures, snapshot.recent_claims)?;
        if let Some(memory) = index.pool_memory(&snapshot.pool) {
            let due = status_due(memory.status_written_at, state.now());
            let accepted = snapshot.creation_proven.then_some(&memory.accepted_creation);
            writeln!(text, "{due:?} {accepted:?} {:?}", memory.creation_backoff)?;
            let of_revisions = match &memory.revision_request {
                RevisionProgress::Renumbered(last) if last.until <= state.now() => &RevisionProgress::Idle,
                progress => progress,
            };
            writeln!(text, "{:?} {of_revisions:?}", memory.status_write)?;
            writeln!(text, "{} {:?}", memory.waits_for_first_pod, memory.demand)?;
        }
        for revision in &snapshot.revisions {
            let stored = (
                &revision.key.name,
                &revision.uid,
                revision.number,
                &revision.template.canonical,
            );
            writeln!(text, "{stored:?}")?;
        }
    }
    for key in index.pod_keys() {
        writeln!(text, "{:?}", index.pod(&key))?;
    }
    let expectations = &index.expectations;
    let failed = expectations.failed_creations().into_iter();
    let decided: Vec<_> = failed.map(|creation| creation.decided).collect();
    let progress = index.watch_progress();
    writeln!(text, "{progress:?} {:?} {decided:?}", expectations.describe())
}

/// `text` without the numbers after `field`. The order of claims tells them apart, and not their sequence numbers, which a
/// restart changes.
fn without(field: &str, text: &str) -> String {
    let mut parts = text.split(field);
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| {
        text + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

/// What is known by its rank alone, or by its beginning and its rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a> {
    /// What it says besides its order: of a pod, the pool and the revision.
    kept: &'a str,
    word: &'a str,
}

impl<'a> Name<'a> {
    fn of(word: &'a str) -> Option<Self> {
        let is_version = || word.len() == 10 && word.bytes().all(|b| b.is_ascii_digit());
        let is_pod = || {
            (word.starts_with("pl-") || word.starts_with("po-"))
                && word.len() == "pl-".len() + 10 + "-".len() + 5
        };
        let kept = match word.as_bytes().first()? {
            b'1' if is_version() => "",
            b'u' if word.starts_with("uid-") => "uid",
            b'p' if is_pod() => &word[..13],
            _ => return None,
        };
        Some(Self { kept, word })
    }
}

/// Hashes a text in which each name stands for its rank among all of the text.
fn hash_ranked(text: &str) -> u128 {
    let found: Vec<(usize, Name)> = words(text)
        .filter_map(|(start, word)| Some((start, Name::of(word)?)))
        .collect();
    let mut ranks: Vec<Name> = found.iter().map(|(_, name)| *name).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
    1.hash(&mut hashers[1]);
    let mut done = 0;
    for (start, name) in &found {
        let rank = ranks.binary_search(name).unwrap();
        for hasher in &mut hashers {
            (&text[done..*start], name.kept, rank).hash(hasher);
        }
        done = start + name.word.len();
    }
    let [high, low] = hashers.map(|mut hasher| {
        text[done..].hash(&mut hasher);
        u128::from(hasher.finish())
    });
    high << 64 | low
}

/// The words of a text and where they start.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part_of_word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    let bytes = text.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next + bytes[next..].iter().position(part_of_word)?;
        let length = bytes[start..].iter().position(|b| !part_of_word(b));
        next = length.map_or(bytes.len(), |length| start + length);
        Some((start, &text[start..next]))
    })
}
