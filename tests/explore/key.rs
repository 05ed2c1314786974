//! When two worlds are the same: everything that decides what may happen next, written down with versions, UIDs and
//! names of pods replaced by their ranks, since nothing but their order matters.

use crate::operator::{Operator, Running};
use crate::state::State;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use warmpool::executor::task::Task;
use warmpool::model::Key;

pub fn of(state: &State) -> u128 {
    let mut text = String::with_capacity(32 * 1024);
    write(&mut text, state).unwrap();
    hash_ranked(&text)
}

fn write(text: &mut String, state: &State) -> std::fmt::Result {
    for (kind, object) in state.server.all() {
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
        state.seconds,
        state.server.quota,
        (ghost.late, &ghost.published, &ghost.bound)
    )?;
    state
        .operators
        .iter()
        .try_for_each(|operator| write_operator(text, state, operator))
}

fn write_operator(text: &mut String, state: &State, operator: &Operator) -> std::fmt::Result {
    writeln!(text, "operator {:?} {:?}", operator.due, operator.wakes)?;
    for (kind, events) in &operator.inbox {
        writeln!(text, "to come {kind:?}")?;
        for event in events {
            writeln!(text, "{} {}", event.gone, event.object.text)?;
        }
    }
    write_index(text, state, operator)?;
    let mut tasks: Vec<_> = operator.running.iter().map(|t| told(state, t)).collect();
    tasks.sort();
    tasks.iter().try_for_each(|task| writeln!(text, "task {task}"))
}

fn told(state: &State, running: &Running) -> String {
    let open = running
        .open
        .iter()
        .map(|open| (open.number, &open.request, &open.answer));
    let taken = if state.scene.strict {
        state.ghost.bindings - running.bindings_before
    } else {
        0
    };
    let answers: Vec<_> = running
        .answers
        .iter()
        .map(|a| (a.number, a.answer.code, &a.answer.body.text))
        .collect();
    let task = without_sequence(&format!("{:?}", running.task));
    // What is read is taken over by how far the watches had told when it was asked for.
    let reads = match &running.task {
        Task::Revise { .. } | Task::LiveRead { .. } => true,
        Task::UpdateClaim { confirm_loss, .. } => !confirm_loss.is_empty(),
        _ => false,
    };
    let before = reads.then(|| running.begun.index.watch_progress());
    format!(
        "{task} {answers:?} {:?} {:?} {taken} {before:?}",
        open.collect::<Vec<_>>(),
        running.holds
    )
}

fn write_index(text: &mut String, state: &State, operator: &Operator) -> std::fmt::Result {
    let index = &operator.index;
    let mut claims: Vec<_> = index
        .claim_keys()
        .iter()
        .filter_map(|key| index.claim(key))
        .collect();
    claims.sort_by_key(|claim| claim.sequence);
    for claim in claims {
        let told = without_sequence(&format!("{claim:?}"));
        let written = &index.as_written(&claim).resource_version;
        let noted = (
            index.awaits(&claim.uid),
            index.is_busy(&claim),
            index.has_waited(&claim),
            index.assigned_pool(&claim.uid),
        );
        writeln!(text, "{told} {written} {noted:?}")?;
        let wait_reason = index
            .claim_snapshot(&claim.key, state.now())
            .and_then(|view| view.wait_reason);
        writeln!(text, "{:?}", wait_reason.map(|wait_reason| wait_reason.reason))?;
    }
    for (pool, _) in &state.scene.pools {
        let key = Key::new("default", *pool);
        let Some(view) = index.pool_snapshot(&key, state.now(), 0) else {
            continue;
        };
        writeln!(text, "{:?} {:?}", view.pool, index.awaits(&view.pool.uid))?;
        writeln!(text, "{:?} {:?}", view.failures, view.recent_claims)?;
        if let Some(memory) = index.pool_memory(&view.pool) {
            let due = memory.status_due(state.now());
            writeln!(text, "{due:?} {:?}", memory.creation_backoff)?;
        }
        for revision in &view.revisions {
            let stored = (
                &revision.key.name,
                &revision.uid,
                revision.number,
                &revision.template.canonical,
            );
            writeln!(text, "{stored:?}")?;
        }
    }
    for key in operator.index.pod_keys() {
        writeln!(text, "{:?}", index.pod(&key))?;
    }
    writeln!(
        text,
        "{:?} {:?}",
        index.watch_progress(),
        index.expectations.describe()
    )
}

/// Claims are told apart by the order in which they came, not by a number that a restart changes.
fn without_sequence(text: &str) -> String {
    let mut parts = text.split("sequence: ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |told, part| {
        told + part.trim_start_matches(|c: char| c.is_ascii_digit())
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
