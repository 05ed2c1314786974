//! A breach and the way to it, for a person to read and for a test to repeat.

use crate::action::Action;
use crate::api_server::{Event, Kind};
use crate::goal;
use crate::laws::{Breach, breach};
use crate::scene::TEMPLATE;
use crate::search::RESTLESS;
use crate::send;
use crate::state::State;
use serde_json::Value;
use std::fmt;

/// Undisturbed steps in which half a minute passes.
const BUSY: usize = 100;

#[derive(Debug)]
pub struct Story {
    pub begin: State,
    pub actions: Vec<Action>,
    pub breach: Breach,
}

impl Story {
    pub fn new(begin: &State, actions: Vec<Action>, breach: Breach) -> Self {
        Self {
            begin: begin.clone(),
            actions,
            breach,
        }
    }
}

/// The breach that these actions, and then the undisturbed course, lead to. Actions that cannot happen are left out.
pub fn replay(begin: &State, actions: &[Action]) -> Option<Story> {
    let (mut state, mut happened) = (begin.clone(), Vec::new());
    for action in actions {
        let Some(after) = state.after(action) else {
            continue;
        };
        happened.push(action.clone());
        match after {
            Ok(next) => state = next,
            Err(breach) => return Some(Story::new(begin, happened, breach)),
        }
    }
    let breach = come_to_rest(state, &mut happened).err()?;
    Some(Story::new(begin, happened, breach))
}

/// Ends what disturbs, a second leader among it, and follows the undisturbed course to its end. However busy the operator
/// is, what takes time happens, too.
pub fn come_to_rest(mut state: State, happened: &mut Vec<Action>) -> Result<(), Breach> {
    while state.operators.len() > 1 {
        happened.push(Action::Retire);
        state.happen(&Action::Retire).expect("there are several")?;
    }
    for step in 1..=RESTLESS {
        let Some(next) = state.undisturbed() else {
            return goal::reached(&state);
        };
        let meanwhile = (step % BUSY == 0).then(|| state.slowest()).flatten();
        let action = meanwhile.unwrap_or(next);
        happened.push(action.clone());
        state.happen(&action).expect("it is enabled")?;
    }
    breach("I8", format!("no rest after {RESTLESS} undisturbed steps"))
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.breach)?;
        writeln!(f, "  in the scene {:?}:", self.begin.scene.name)?;
        let mut state = self.begin.clone();
        for (number, action) in self.actions.iter().enumerate() {
            writeln!(f, "{:4}. {}", number + 1, sentence(&state, action))?;
            match state.after(action) {
                Some(Ok(next)) => state = next,
                Some(Err(_)) => break,
                None => writeln!(f, "      (which cannot happen)")?,
            }
        }
        let written = serde_json::to_string(&self.actions).map_err(|_| fmt::Error)?;
        writeln!(f, "To repeat it: {written}")
    }
}

/// An action in words.
pub fn sentence(state: &State, action: &Action) -> String {
    let who = |o: &usize| match state.operators.len() {
        1 => "the operator".to_string(),
        _ => format!("operator {}", o + 1),
    };
    match action {
        Action::Deliver(o, kind) => {
            let inbox = state
                .operators
                .get(*o)
                .and_then(|operator| operator.inbox.get(kind));
            let event = inbox.and_then(|inbox| inbox.front());
            format!("{} sees that {}", who(o), event.map_or("nothing".into(), news))
        }
        Action::List(o, kind) => format!("{} lists {kind:?}", who(o)),
        Action::Relist(o, kind) => format!("{} lists {kind:?} again and misses what came between", who(o)),
        Action::Reconcile(o, due) => format!("{} reconciles {due:?}", who(o)),
        Action::Serve(o, r) => format!(
            "the API server serves the request of {} to {}",
            who(o),
            request(state, *o, *r)
        ),
        Action::Reject(o, r) => format!(
            "a policy rejects the request of {} to {}",
            who(o),
            request(state, *o, *r)
        ),
        Action::Answer(o, r) => format!(
            "{} gets the answer to its request to {}",
            who(o),
            request(state, *o, *r)
        ),
        Action::Lose(o, r) => format!(
            "the connection of {} breaks on its request to {}",
            who(o),
            request(state, *o, *r)
        ),
        Action::ServeLate(n) => {
            let request = state.late.get(*n).map_or("nothing".into(), ToString::to_string);
            format!("a request given up before is served: {request}")
        }
        Action::Settle(o) => format!(
            "{} has not seen its own writes for 30 s and reads the pods",
            who(o)
        ),
        Action::Crash(o) => format!("{} is killed", who(o)),
        Action::Retire => format!("operator {} ends, it leads no more", state.operators.len()),
        Action::Ready(pod) => format!("pod {pod} becomes Ready"),
        Action::Unready(pod) => format!("pod {pod} ceases to be Ready"),
        Action::Revoke(pod) => format!("the handler of preNormal admits pod {pod} no more"),
        Action::Hang(pod) => format!("pod {pod} hangs and will not become Ready"),
        Action::Die(pod) => format!("pod {pod} fails"),
        Action::Admit(pod) => format!("the handler of preNormal admits pod {pod}"),
        Action::Release(pod) => format!("the handler of preDelete lets pod {pod} go"),
        Action::End(pod) => format!("pod {pod} has ended and is gone"),
        Action::Finish(kind, name) => format!("{} {name} is gone at last", crate::request::one_of(*kind)),
        Action::Collect(pod) => format!("the garbage collector deletes pod {pod}"),
        Action::Claim => {
            let next = state.left.claims.first().map_or("?", |(name, _)| name);
            format!("a user creates claim {next}")
        }
        Action::Unclaim(name) => format!("a user deletes claim {name}"),
        Action::Edit => match state.left.edits.first() {
            Some((name, Value::Null)) => format!("a user deletes {}", edited(name)),
            Some((name, Value::Bool(_))) => format!("a user creates {} anew", edited(name)),
            Some((name, edit)) => format!("a user edits {}: {edit}", edited(name)),
            None => "a user edits nothing".to_string(),
        },
        Action::Evict(pod) => format!("a user labels pod {pod} for eviction"),
        Action::Remove(pod) => format!("a user deletes pod {pod}"),
        Action::Cordon(node) => format!("a user cordons {node}"),
        Action::Uncordon(node) => format!("a user uncordons {node}"),
        Action::Lost(node) => format!("{node} is deleted"),
        Action::Prune(revision) => format!("a user deletes revision {revision}"),
        Action::Forbid => "a quota has no room for another pod".to_string(),
        Action::Allow => "the quota has room again".to_string(),
        Action::Pass => "time passes".to_string(),
        Action::PassSecond => "time passes, to the end of the second".to_string(),
    }
}

/// What a user edits.
fn edited(name: &str) -> String {
    match name {
        TEMPLATE => format!("PodTemplate {name}"),
        _ => format!("pool {name}"),
    }
}

/// A request in flight in words, with its outcome once it is served.
fn request(state: &State, o: usize, r: usize) -> String {
    let in_flight = state
        .operators
        .get(o)
        .and_then(|operator| operator.in_flight.get(r));
    let Some(in_flight) = in_flight else {
        return "nothing".to_string();
    };
    let outcome = match &in_flight.outcome {
        None => String::new(),
        Some(Ok(_)) => ": done".to_string(),
        Some(Err(failure)) => format!(": {:?}", failure.class),
    };
    let (request, _) = send::lose(in_flight.request());
    let request = request.map_or("do what cannot be done".to_string(), |request| {
        request.to_string()
    });
    request + &outcome
}

fn news(event: &Event) -> String {
    let object = &event.object;
    let what = match (event.gone, event.kind) {
        (true, _) => "gone".to_string(),
        (false, Kind::Pods) => {
            let ready = if object.ready() { ", Ready" } else { "" };
            let ending = if object.terminating() {
                ", being deleted"
            } else {
                ""
            };
            format!("{} {}{ready}{ending}", object.state(), object.phase())
        }
        (false, Kind::Pools | Kind::Claims) if object.terminating() => "being deleted".to_string(),
        (false, Kind::Claims) => match object.phase() {
            "" => "new".to_string(),
            phase => phase.to_string(),
        },
        (false, _) => "there or changed".to_string(),
    };
    format!(
        "{} {} is {what}",
        crate::request::one_of(event.kind),
        object.name()
    )
}
