//! A world at one moment, and what may happen next.

use crate::action::Action;
use crate::laws::{self, Breach, Ghost, breach};
use crate::operator::{Due, Moment, Open, Operator, Running};
use crate::request::{Answer, Request, Verb};
use crate::scene::{Left, Scene};
use crate::search::RESTLESS;
use crate::server::{Kind, Server};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use warmpool::executor::task::Task;

#[derive(Clone, Debug)]
pub struct State {
    pub scene: &'static Scene,
    pub server: Server,
    pub operators: Vec<Operator>,
    /// Requests whose sender has given them up, and that may still be carried out.
    pub late: Vec<Request>,
    pub left: Left,
    pub seconds: i64,
    pub ghost: Ghost,
}

/// When every world begins: with the year 2026.
const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// Moments later than this are not waited for.
const SOON: i64 = 3600;

impl State {
    pub fn now(&self) -> Timestamp {
        BEGIN
            .checked_add(SignedDuration::from_secs(self.seconds))
            .unwrap()
    }

    pub fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            seed: self.server.seed(),
            bindings: self.ghost.bindings,
        }
    }

    /// What may happen next without a fault and without a user. What takes longest comes last.
    pub fn course(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (o, operator) in self.operators.iter().enumerate() {
            for (t, task) in operator.running.iter().enumerate() {
                for (r, open) in task.open.iter().enumerate() {
                    actions.push(match open.answer {
                        Some(_) => Action::Answer(o, t, r),
                        None => Action::Serve(o, t, r),
                    });
                }
            }
            let inboxes = operator.inbox.iter().filter(|(_, events)| !events.is_empty());
            actions.extend(inboxes.map(|(kind, _)| Action::Deliver(o, *kind)));
            let unlisted = Kind::ALL
                .into_iter()
                .filter(|kind| !operator.inbox.contains_key(kind));
            actions.extend(unlisted.map(|kind| Action::List(o, kind)));
            actions.extend(
                self.reconcilable(o)
                    .into_iter()
                    .map(|due| Action::Reconcile(o, due)),
            );
        }
        for pod in self.server.list(Kind::Pods) {
            let name = pod.name().to_string();
            if pod.terminating() {
                actions.push(Action::End(name));
            } else if self.server.is_orphan(pod) {
                actions.push(Action::Collect(name));
            } else if !pod.ended() && !pod.ready() && !pod.is_broken() {
                actions.push(Action::Ready(name));
            } else if pod.ready() && !pod.is_admitted() {
                actions.push(Action::Admit(name));
            } else if pod.state() == "draining" && pod.is_held_back() {
                actions.push(Action::Release(name));
            }
        }
        for kind in [Kind::Pools, Kind::Claims] {
            let going = self.server.list(kind).filter(|object| object.terminating());
            actions.extend(going.map(|object| Action::Finish(kind, object.name().to_string())));
        }
        for (o, operator) in self.operators.iter().enumerate() {
            let waiting = operator
                .running
                .iter()
                .enumerate()
                .filter(|(_, t)| t.task.waits());
            actions.extend(waiting.map(|(t, _)| Action::Wake(o, t)));
        }
        actions.extend(self.server.quota.then_some(Action::Allow));
        actions
    }

    /// All that may happen next.
    pub fn enabled(&self) -> Vec<Action> {
        let mut actions = self.course();
        let still = actions.is_empty();
        let left = &self.left;
        for (o, operator) in self.operators.iter().enumerate() {
            if left.relists > 0 {
                let behind = operator.inbox.iter().filter(|(_, events)| !events.is_empty());
                actions.extend(behind.map(|(kind, _)| Action::Relist(o, *kind)));
            }
            if left.losses > 0 {
                for (t, task) in operator.running.iter().enumerate() {
                    actions.extend((0..task.open.len()).map(|r| Action::Lose(o, t, r)));
                }
            }
            if left.stalls > 0 && !operator.index.expectations.is_empty() {
                actions.push(Action::Settle(o));
            }
            if left.crashes > 0 && (!operator.running.is_empty() || !operator.due.is_empty()) {
                actions.push(Action::Crash(o));
            }
        }
        actions.extend((0..self.late.len()).map(Action::ServeLate));
        for pod in self.server.list(Kind::Pods).filter(|pod| !pod.terminating()) {
            let may = |count: u8, action: fn(String) -> Action| {
                (count > 0 && !pod.ended()).then(|| action(pod.name().to_string()))
            };
            actions.extend(may(left.unready, Action::Unready).filter(|_| pod.ready()));
            let comes_up = !pod.ready() && !pod.is_broken();
            actions.extend(may(left.hangs, Action::Hang).filter(|_| comes_up));
            let admitted = pod.at("/metadata/labels/admitted") == "yes";
            actions.extend(may(left.unready, Action::Revoke).filter(|_| admitted));
            actions.extend(may(left.deaths, Action::Die).filter(|_| pod.runs()));
            let warm = pod.state() == "warm";
            let evict = may(left.evictions, Action::Evict);
            actions.extend(evict.filter(|_| warm && !pod.is_to_be_evicted()));
            actions.extend(may(left.removals, Action::Remove));
        }
        let next = left.claims.first();
        actions.extend(
            next.filter(|(name, _)| self.server.get(Kind::Claims, name).is_none())
                .map(|_| Action::Claim),
        );
        if left.unclaims > 0 {
            let claims = self.server.list(Kind::Claims);
            actions.extend(claims.map(|claim| Action::Unclaim(claim.name().to_string())));
        }
        if left.quotas > 0 && !self.server.quota {
            actions.push(Action::Forbid);
        }
        if left.prunes > 0 {
            let revisions = self.server.list(Kind::Revisions);
            actions.extend(revisions.map(|revision| Action::Prune(revision.name().to_string())));
        }
        if !left.edits.is_empty() {
            actions.push(Action::Edit);
        }
        if (still || self.scene.hasty) && left.passes > 0 && self.wake_at().is_some() {
            actions.push(Action::Pass);
        }
        actions
    }

    /// The next moment at which an operator wants to look at something.
    fn wake_at(&self) -> Option<i64> {
        let wakes = self.operators.iter().flat_map(|o| o.wakes.values());
        let at = wakes.map(|at| at.duration_since(self.now()).as_secs() + 1).min();
        at.filter(|seconds| *seconds < SOON)
            .map(|seconds| self.seconds + seconds.max(1))
    }

    /// What happens when nobody disturbs and nothing fails. `None` at rest.
    pub fn undisturbed(&self) -> Option<Action> {
        let first = self.course().into_iter().next();
        first
            .or_else(|| self.unseen())
            .or_else(|| self.wake_at().map(|_| Action::Pass))
    }

    /// What happens in the end although the operators are busy.
    pub fn slowest(&self) -> Option<Action> {
        self.unseen().or_else(|| self.course().pop())
    }

    /// Own writes of an operator are unseen, and half a minute later it reads live.
    fn unseen(&self) -> Option<Action> {
        let waits = |operator: &Operator| !operator.index.expectations.is_empty();
        self.operators.iter().position(waits).map(Action::Settle)
    }

    /// The world after `action`; `None` when it cannot happen now.
    ///
    /// # Errors
    /// The law that it breaks.
    pub fn after(&self, action: &Action) -> Option<Result<Self, Breach>> {
        let mut next = self.clone();
        let judged = next.happen(action)?;
        Some(judged.map(|()| next))
    }

    /// Lets `action` happen in this world, which is of no use any more when it cannot.
    ///
    /// # Errors
    /// The law that it breaks.
    pub fn happen(&mut self, action: &Action) -> Option<Result<(), Breach>> {
        let before = self.server.clone();
        let moment = self.moment();
        let now = moment.now.to_string();
        let mut judged = Ok(());
        match action {
            Action::Deliver(o, kind) => self.operators.get_mut(*o)?.deliver(*kind, moment.now),
            Action::List(o, kind) => self.operators.get_mut(*o)?.list(*kind, &self.server),
            Action::Relist(o, kind) => {
                self.left.relists = self.left.relists.checked_sub(1)?;
                self.operators.get_mut(*o)?.list(*kind, &self.server);
            }
            Action::Reconcile(o, due) => {
                self.operators.get(*o)?.due.contains(due).then_some(())?;
                let started = self.reconcile(*o, due);
                judged = laws::planned(self.scene, &self.operators[*o], &started, moment.now);
            }
            Action::Serve(o, t, r) => {
                let running = self.operators.get_mut(*o)?.running.get_mut(*t)?;
                let running = Arc::make_mut(running);
                let taken_since = self.ghost.bindings - running.bindings_before;
                let known = Arc::clone(&running.begun.index);
                let open = running.open.get_mut(*r).filter(|open| open.answer.is_none())?;
                let request = open.request.clone();
                let answer = self.server.serve(&request, &now);
                open.answer = Some(answer.clone());
                let prompt = self.scene.prompt || matches!(running.task, Task::PublishPool { .. });
                judged = laws::served(self, &before, taken_since, Some(&known));
                self.spread();
                if prompt || request.verb == Verb::Get && !self.scene.slow_reads {
                    let moment = self.moment();
                    self.operators[*o].answer(*t, *r, answer, moment);
                }
            }
            Action::Answer(o, t, r) => {
                let operator = self.operators.get_mut(*o)?;
                let answer = operator.running.get(*t)?.open.get(*r)?.answer.clone()?;
                operator.answer(*t, *r, answer, moment);
            }
            Action::Lose(o, t, r) => {
                self.left.losses = self.left.losses.checked_sub(1)?;
                let open = self.operators.get(*o)?.running.get(*t)?.open.get(*r)?.clone();
                self.give_up([&open]);
                self.operators[*o].answer(*t, *r, Answer::lost(), moment);
            }
            Action::ServeLate(n) => {
                if *n >= self.late.len() {
                    return None;
                }
                let request = self.late.remove(*n);
                self.server.serve(&request, &now);
                self.ghost.late |= !self.server.news.is_empty();
                judged = laws::served(self, &before, usize::MAX, None);
            }
            Action::Wake(o, t) => {
                let operator = self.operators.get_mut(*o)?;
                operator.running.get(*t).filter(|t| t.task.waits())?;
                operator.wake(*t, moment);
            }
            Action::Settle(o) => {
                self.left.stalls = self.left.stalls.saturating_sub(1);
                self.operators.get_mut(*o)?.settle(moment);
            }
            Action::Crash(o) => {
                self.left.crashes = self.left.crashes.checked_sub(1)?;
                let operator = std::mem::take(self.operators.get_mut(*o)?);
                self.give_up(operator.running.iter().flat_map(|task| &task.open));
            }
            Action::Retire => {
                let operator = self.operators.pop()?;
                self.give_up(operator.running.iter().flat_map(|task| &task.open));
            }
            Action::Pass => {
                self.seconds = self.wake_at()?;
                self.left.passes = self.left.passes.saturating_sub(1);
                let now = self.now();
                self.operators
                    .iter_mut()
                    .for_each(|operator| operator.wake_up(now));
            }
            _ => self.outside(action, &now)?,
        }
        self.spread();
        let looked = self.look_at_the_idle();
        Some(judged.and(looked))
    }

    /// What nobody waits for any more may still be carried out.
    fn give_up<'a>(&mut self, open: impl IntoIterator<Item = &'a Open>) {
        let unserved = open
            .into_iter()
            .filter(|o| o.answer.is_none() && o.request.verb != Verb::Get);
        if self.scene.late {
            self.late.extend(unserved.map(|open| open.request.clone()));
        }
    }

    /// Looks at one object. Answers the tasks that were started.
    fn reconcile(&mut self, o: usize, due: &Due) -> Vec<Task> {
        let moment = self.moment();
        let started = self.operators[o].reconcile(due, moment);
        self.looked(o, started)
    }

    /// Looks at every object that needs nothing now. To do so later is the same, or there is an event that has it done
    /// again.
    ///
    /// # Errors
    /// I8 when there is no end to that.
    fn look_at_the_idle(&mut self) -> Result<(), Breach> {
        for o in 0..self.operators.len() {
            if (0..RESTLESS).all(|_| self.look_at_an_idle(o)) {
                let due = format!("{:?}", self.operators[o].due);
                return breach("I8", format!("an operator looks at {due} again and again"));
            }
        }
        Ok(())
    }

    /// Looks at one object that needs nothing, if there is one.
    fn look_at_an_idle(&mut self, o: usize) -> bool {
        let (moment, scene, due) = (self.moment(), self.scene, self.reconcilable(o));
        let operator = &mut self.operators[o];
        let mut looks = due
            .iter()
            .map(|due| operator.look_if_idle(due, moment, |task| scene.has_written(task)));
        let Some(started) = looks.find_map(|started| started) else {
            return false;
        };
        self.looked(o, started);
        true
    }

    /// What a look at an object has started, but for what is written at once.
    fn looked(&mut self, o: usize, mut started: Vec<Task>) -> Vec<Task> {
        started.retain(|task| !self.scene.has_written(task));
        if self.scene.quiet {
            self.write_statuses(o);
        }
        started
    }

    /// What an operator may look at now.
    fn reconcilable(&self, o: usize) -> Vec<Due> {
        let operator = &self.operators[o];
        let held = |due: &&Due| match due {
            Due::Claim(name) => operator.running.iter().any(|t| t.holds.as_ref() == Some(name)),
            Due::Pool(_) => false,
        };
        operator.due.iter().filter(|due| !held(due)).cloned().collect()
    }

    /// Writes the statuses of pools that an operator has just planned.
    fn write_statuses(&mut self, o: usize) {
        let now = self.now().to_string();
        let publishes = |running: &Arc<Running>| matches!(running.task, Task::PublishPool { .. });
        while let Some(t) = self.operators[o].running.iter().position(publishes) {
            let request = self.operators[o].running[t].open[0].request.clone();
            let answer = self.server.serve(&request, &now);
            self.spread();
            let moment = self.moment();
            self.operators[o].answer(t, 0, answer, moment);
        }
    }

    /// Every watch is told of what is new: it is on its way, or, when its kind does not lag, there.
    fn spread(&mut self) {
        let now = self.now();
        for event in std::mem::take(&mut self.server.news) {
            for operator in &mut self.operators {
                let Some(inbox) = operator.inbox.get_mut(&event.kind) else {
                    continue;
                };
                inbox.push_back(event.clone());
                if !self.scene.lagging.contains(&event.kind) {
                    operator.deliver(event.kind, now);
                }
            }
        }
    }
}
