//! A breach and the way to it, for a person to read and for a test to repeat.

use crate::action::Action;
use crate::goal;
use crate::laws::{Breach, breach};
use crate::request::Answer;
use crate::search::RESTLESS;
use crate::server::{Event, Kind};
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
pub fn tell(begin: &State, actions: &[Action]) -> Option<Story> {
    let (mut state, mut told) = (begin.clone(), Vec::new());
    for action in actions {
        let Some(after) = state.after(action) else {
            continue;
        };
        told.push(action.clone());
        match after {
            Ok(next) => state = next,
            Err(breach) => return Some(Story::new(begin, told, breach)),
        }
    }
    let breach = settle(state, &mut told).err()?;
    Some(Story::new(begin, told, breach))
}

/// Ends what disturbs, a second leader among it, and follows the undisturbed course to its end. However busy the operator
/// is, what takes time happens, too.
pub fn settle(mut state: State, told: &mut Vec<Action>) -> Result<(), Breach> {
    while state.operators.len() > 1 {
        told.push(Action::Retire);
        state.happen(&Action::Retire).expect("there are several")?;
    }
    for step in 1..=RESTLESS {
        let Some(next) = state.undisturbed() else {
            return goal::reached(&state);
        };
        let meanwhile = (step % BUSY == 0).then(|| state.slowest()).flatten();
        let action = meanwhile.unwrap_or(next);
        told.push(action.clone());
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
    let open = |o: &usize, t: &usize, r: &usize| {
        let task = state.operators.get(*o)?.running.get(*t)?;
        task.open.get(*r)
    };
    match action {
        Action::Deliver(o, kind) => {
            let inbox = state
                .operators
                .get(*o)
                .and_then(|operator| operator.inbox.get(kind));
            let event = inbox.and_then(|inbox| inbox.front());
            format!("{} is told that {}", who(o), event.map_or("nothing".into(), news))
        }
        Action::List(o, kind) => format!("{} lists {kind:?}", who(o)),
        Action::Relist(o, kind) => format!("{} lists {kind:?} anew and misses what came between", who(o)),
        Action::Reconcile(o, due) => format!("{} looks at {due:?}", who(o)),
        Action::Serve(o, t, r) | Action::Lose(o, t, r) | Action::Answer(o, t, r) => {
            let open = open(o, t, r);
            let request = open.map_or("nothing".into(), |open| open.request.to_string());
            let answer = open.and_then(|open| open.answer.as_ref());
            match (action, answer) {
                (Action::Serve(..), _) => {
                    format!("{} has asked to {request}, and the API server does it", who(o))
                }
                (Action::Answer(..), Some(Answer { code, .. })) => {
                    format!("{} is answered {code} to: {request}", who(o))
                }
                (_, Some(_)) => format!("{} never gets the answer to: {request}", who(o)),
                (_, None) => format!("{} has asked to {request}, and the connection breaks", who(o)),
            }
        }
        Action::ServeLate(n) => {
            let request = state.late.get(*n).map_or("nothing".into(), ToString::to_string);
            format!("a request given up before is carried out: {request}")
        }
        Action::Wake(o, _) => format!("{} has waited for 5 s and tries again", who(o)),
        Action::Settle(o) => format!("{} has waited for 30 s for its own writes and reads live", who(o)),
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
            Some((pool, Value::Null)) => format!("a user deletes pool {pool}"),
            Some((pool, Value::Bool(_))) => format!("a user creates pool {pool} anew"),
            Some((pool, edit)) => format!("a user edits pool {pool}: {edit}"),
            None => "a user edits nothing".to_string(),
        },
        Action::Evict(pod) => format!("a user labels pod {pod} for eviction"),
        Action::Remove(pod) => format!("a user deletes pod {pod}"),
        Action::Prune(revision) => format!("a user deletes revision {revision}"),
        Action::Forbid => "a quota has no room for another pod".to_string(),
        Action::Allow => "the quota has room again".to_string(),
        Action::Pass => "time passes".to_string(),
    }
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
