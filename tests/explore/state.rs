//! A world at one moment, and what may happen next.

use crate::action::Action;
use crate::api_server::{ApiServer, Kind};
use crate::laws::{self, Breach, Ghost, breach};
use crate::object::Object;
use crate::operator::{Due, InFlight, Moment, Operator, binds, is_read};
use crate::request::HttpRequest;
use crate::scene::{Left, Scene};
use crate::search::RESTLESS;
use crate::send;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::sync::Arc;
use warmpool::model::request::{Outcome, Request};
use warmpool::model::retry::RETRY_DELAY;

#[derive(Clone, Debug)]
pub struct State {
    pub scene: &'static Scene,
    pub api_server: ApiServer,
    pub operators: Vec<Operator>,
    /// Requests whose sender has given them up, and that may still be served.
    pub late: Vec<HttpRequest>,
    pub left: Left,
    pub milliseconds: i64,
    pub ghost: Ghost,
}

/// When every world begins: with the year 2026.
const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// Moments later than this are not waited for.
const SOON: SignedDuration = SignedDuration::from_hours(1);

impl State {
    pub fn now(&self) -> Timestamp {
        BEGIN
            .checked_add(SignedDuration::from_millis(self.milliseconds))
            .unwrap()
    }

    /// The time as the API server writes it.
    fn api_server_time(&self) -> String {
        Timestamp::new(self.now().as_second(), 0).unwrap().to_string()
    }

    pub fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            seed: self.api_server.seed(),
            bindings: self.ghost.bindings,
        }
    }

    /// What may happen next without a fault and without a user. What takes longest comes last.
    pub fn course(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (o, operator) in self.operators.iter().enumerate() {
            let in_flight = operator.in_flight.iter().enumerate();
            actions.extend(in_flight.map(|(r, in_flight)| match in_flight.outcome {
                Some(_) => Action::Answer(o, r),
                None => Action::Serve(o, r),
            }));
            let inboxes = operator.inbox.iter().filter(|(_, events)| !events.is_empty());
            actions.extend(inboxes.map(|(kind, _)| Action::Deliver(o, *kind)));
            let unlisted = Kind::ALL
                .into_iter()
                .filter(|kind| !operator.inbox.contains_key(kind));
            actions.extend(unlisted.map(|kind| Action::List(o, kind)));
            let due = operator.due.iter().cloned();
            actions.extend(due.map(|due| Action::Reconcile(o, due)));
        }
        for pod in self.api_server.list(Kind::Pods) {
            let name = pod.name().to_string();
            if pod.terminating() {
                actions.push(Action::End(name));
            } else if self.api_server.is_orphan(pod) || self.api_server.is_without_node(pod) {
                actions.push(Action::Collect(name));
            } else if !pod.ended() && !pod.ready() && !pod.is_broken() && self.has_place(pod) {
                actions.push(Action::Ready(name));
            } else if pod.ready() && !pod.is_admitted() {
                actions.push(Action::Admit(name));
            } else if pod.state() == "draining" && pod.is_held_back() {
                actions.push(Action::Release(name));
            }
        }
        for kind in [Kind::Pools, Kind::Claims] {
            let going = self.api_server.list(kind).filter(|object| object.terminating());
            actions.extend(going.map(|object| Action::Finish(kind, object.name().to_string())));
        }
        actions.extend(self.is_retry_near().then_some(Action::Pass));
        actions.extend(self.api_server.quota.then_some(Action::Allow));
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
                actions.extend((0..operator.in_flight.len()).map(|r| Action::Lose(o, r)));
            }
            if left.rejections > 0 {
                let in_flight = operator.in_flight.iter().enumerate();
                let open = in_flight.filter(|(_, sent)| sent.outcome.is_none() && binds(sent.request()));
                actions.extend(open.map(|(r, _)| Action::Reject(o, r)));
            }
            if left.stalls > 0 && operator.has_overdue() {
                actions.push(Action::Settle(o));
            }
            let is_at_work = !operator.in_flight.is_empty() || !operator.due.is_empty();
            if left.crashes > 0 && (is_at_work || operator.wakes().next().is_some()) {
                actions.push(Action::Crash(o));
            }
        }
        actions.extend((0..self.late.len()).map(Action::ServeLate));
        for pod in self.api_server.list(Kind::Pods).filter(|pod| !pod.terminating()) {
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
            next.filter(|(name, _)| self.api_server.get(Kind::Claims, name).is_none())
                .map(|_| Action::Claim),
        );
        if left.unclaims > 0 {
            let claims = self.api_server.list(Kind::Claims);
            actions.extend(claims.map(|claim| Action::Unclaim(claim.name().to_string())));
        }
        if left.quotas > 0 && !self.api_server.quota {
            actions.push(Action::Forbid);
        }
        let nodes = || self.api_server.list(Kind::Nodes);
        let open = nodes().filter(|node| self.api_server.may_be_cordoned(node.name()));
        let cordoned = || nodes().filter(|node| node.is_cordoned());
        let may = |count: u8, action: fn(String) -> Action| {
            move |node: &Arc<Object>| (count > 0).then(|| action(node.name().to_string()))
        };
        actions.extend(open.filter_map(may(left.cordons, Action::Cordon)));
        actions.extend(cordoned().filter_map(may(left.uncordons, Action::Uncordon)));
        actions.extend(cordoned().filter_map(may(left.lost_nodes, Action::Lost)));
        if left.prunes > 0 {
            let revisions = self.api_server.list(Kind::Revisions);
            actions.extend(revisions.map(|revision| Action::Prune(revision.name().to_string())));
        }
        if !left.edits.is_empty() {
            actions.push(Action::Edit);
        }
        let may_pass = (still || self.scene.hasty) && left.passes > 0 && !self.is_retry_near();
        actions.extend((may_pass && self.next_wake().is_some()).then_some(Action::Pass));
        // At rest time passes by itself; that an operator is late for it is one more way.
        let is_within = |wake: Timestamp| end_of_second(wake) != wake;
        let may_be_late = (still || may_pass) && self.next_wake().is_some_and(is_within);
        actions.extend(may_be_late.then_some(Action::PassSecond));
        actions
    }

    /// The pod has a node, or one takes it.
    fn has_place(&self, pod: &Object) -> bool {
        !pod.at("/spec/nodeName").is_empty() || self.api_server.free_node().is_some()
    }

    /// The next moment at which an operator has something to reconcile.
    fn next_wake(&self) -> Option<Timestamp> {
        let wakes = self.operators.iter().flat_map(Operator::wakes);
        let at = wakes.map(|(_, at)| at).min();
        at.filter(|at| at.duration_since(self.now()) < SOON)
    }

    fn pass_until(&mut self, now: Timestamp) {
        // Rounded up, or a moment within a millisecond would never come.
        let passed = now.duration_since(BEGIN).as_nanos();
        self.milliseconds = ((passed + 999_999) / 1_000_000).try_into().unwrap();
        self.operators
            .iter_mut()
            .for_each(|operator| operator.wake_up(now));
    }

    /// The retry of a request is due in a moment. Other things may take longer than that.
    fn is_retry_near(&self) -> bool {
        let near = |at: Timestamp| at.duration_since(self.now()) <= RETRY_DELAY;
        self.operators.iter().any(|operator| {
            let mut wakes = operator.wakes();
            wakes.any(|(due, at)| near(at) && operator.retries(due))
        })
    }

    /// What happens when nobody disturbs and nothing fails. `None` at rest.
    pub fn undisturbed(&self) -> Option<Action> {
        let first = self.course().into_iter().next();
        first
            .or_else(|| self.unseen())
            .or_else(|| self.next_wake().map(|_| Action::Pass))
    }

    /// What happens in the end although the operators are busy.
    pub fn slowest(&self) -> Option<Action> {
        self.unseen().or_else(|| self.course().pop())
    }

    /// The watch has not shown the writes of an operator, and half a minute later it reads the pods.
    fn unseen(&self) -> Option<Action> {
        let overdue = self.operators.iter().position(Operator::has_overdue);
        overdue.map(Action::Settle)
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

    /// Lets `action` happen in this world, which is useless when it cannot.
    ///
    /// # Errors
    /// The law that it breaks.
    pub fn happen(&mut self, action: &Action) -> Option<Result<(), Breach>> {
        let before = self.api_server.clone();
        let moment = self.moment();
        let now = self.api_server_time();
        let mut judged = Ok(());
        match action {
            Action::Deliver(o, kind) => self.operators.get_mut(*o)?.deliver(*kind, moment.now),
            Action::List(o, kind) => self
                .operators
                .get_mut(*o)?
                .list(*kind, &self.api_server, moment.now),
            Action::Relist(o, kind) => {
                self.left.relists = self.left.relists.checked_sub(1)?;
                self.operators
                    .get_mut(*o)?
                    .list(*kind, &self.api_server, moment.now);
            }
            Action::Reconcile(o, due) => {
                self.operators.get(*o)?.due.contains(due).then_some(())?;
                let sent = self.operators[*o].reconcile(due, moment);
                self.write_statuses(*o);
                if matches!(due, Due::Pool(_)) {
                    judged = laws::planned(self.scene, &self.operators[*o], &sent, moment.now);
                }
            }
            Action::Serve(o, r) | Action::Reject(o, r) => {
                let in_flight = self.operators.get(*o)?.in_flight.get(*r)?;
                let in_flight = Arc::clone(in_flight);
                in_flight.outcome.is_none().then_some(())?;
                let request = in_flight.request();
                if matches!(action, Action::Reject(..)) {
                    binds(request).then_some(())?;
                    self.left.rejections = self.left.rejections.checked_sub(1)?;
                    self.api_server.rejects = true;
                }
                let outcome = send::serve(&mut self.api_server, request, &now);
                self.api_server.rejects = false;
                judged = laws::served(self, &before, Some(&in_flight.decision));
                if judged.is_err() {
                    return Some(judged);
                }
                self.spread();
                let is_prompt = self.scene.prompt || matches!(request, Request::WritePool(_));
                let moment = self.moment();
                let operator = &mut self.operators[*o];
                if is_prompt || is_read(request) && !self.scene.slow_reads {
                    operator.take_over(*r, outcome, moment);
                } else {
                    Arc::make_mut(&mut operator.in_flight[*r]).outcome = Some(outcome);
                }
            }
            Action::Answer(o, r) => {
                let operator = self.operators.get_mut(*o)?;
                let outcome = operator.in_flight.get(*r)?.outcome.clone()?;
                operator.take_over(*r, outcome, moment);
            }
            Action::Lose(o, r) => {
                self.left.losses = self.left.losses.checked_sub(1)?;
                let in_flight = Arc::clone(self.operators.get(*o)?.in_flight.get(*r)?);
                let outcome = self.give_up(&in_flight);
                self.operators[*o].take_over(*r, outcome, moment);
            }
            Action::ServeLate(n) => {
                if *n >= self.late.len() {
                    return None;
                }
                let request = self.late.remove(*n);
                self.api_server.serve(&request, &now);
                self.ghost.late |= !self.api_server.news.is_empty();
                judged = laws::served(self, &before, None);
            }
            Action::Settle(o) => {
                self.left.stalls = self.left.stalls.saturating_sub(1);
                self.operators.get_mut(*o)?.read_overdue(moment);
            }
            Action::Crash(o) => {
                self.left.crashes = self.left.crashes.checked_sub(1)?;
                let started = self.scene.operator();
                let operator = std::mem::replace(self.operators.get_mut(*o)?, started);
                self.give_up_all(&operator);
            }
            Action::Retire => {
                let operator = self.operators.pop()?;
                self.give_up_all(&operator);
            }
            Action::Pass => {
                let next = self.next_wake()?;
                if !self.is_retry_near() {
                    self.left.passes = self.left.passes.saturating_sub(1);
                }
                self.pass_until(next.max(moment.now));
            }
            Action::PassSecond => {
                let next = self.next_wake()?;
                self.left.passes = self.left.passes.saturating_sub(1);
                self.pass_until(end_of_second(next.max(moment.now)));
            }
            _ => self.outside(action, &now)?,
        }
        self.spread();
        let reconciled = self.reconcile_the_idle();
        Some(judged.and(reconciled))
    }

    /// A binding of a leader that is gone is served: the first claim gets an available sandbox that its status does not list.
    pub fn bind_surplus(&mut self) {
        let claim = self.api_server.list(Kind::Claims).next().expect("a claim");
        let pod = self.api_server.list(Kind::Pods).find(|pod| laws::available(pod));
        let pod = pod.expect("an available sandbox").name().to_string();
        let reference = json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": claim.name(), "uid": claim.uid(),
            "controller": true, "blockOwnerDeletion": false,
        });
        let labels = json!({
            "warmpool.dev/state": "claimed", "warmpool.dev/claim": claim.name(), "warmpool.dev/claim-uid": claim.uid(),
        });
        self.api_server.edit(Kind::Pods, &pod, |pod| {
            json_patch::merge(&mut pod["metadata"]["labels"], &labels);
            pod["metadata"]["ownerReferences"] = json!([reference]);
        });
        self.spread();
    }

    /// The connection of a request breaks. The API server may still serve it. Returns its outcome.
    fn give_up(&mut self, in_flight: &InFlight) -> Outcome {
        let (lost, outcome) = send::lose(in_flight.request());
        let is_unserved = in_flight.outcome.is_none() && !is_read(in_flight.request());
        if self.scene.late && is_unserved {
            self.late.extend(lost);
        }
        outcome
    }

    /// The requests of an operator have no sender any more.
    fn give_up_all(&mut self, operator: &Operator) {
        for in_flight in &operator.in_flight {
            let _without_receiver = self.give_up(in_flight);
        }
    }

    /// Reconciles every object for which no request follows now. Later it would be the same, or an event has it reconciled
    /// again.
    ///
    /// # Errors
    /// I8 when there is no end to that.
    fn reconcile_the_idle(&mut self) -> Result<(), Breach> {
        for o in 0..self.operators.len() {
            if (0..RESTLESS).all(|_| self.reconcile_an_idle(o)) {
                let due = format!("{:?}", self.operators[o].due);
                return breach("I8", format!("an operator reconciles {due} again and again"));
            }
        }
        Ok(())
    }

    /// Reconciles one object for which no request follows, if there is one.
    fn reconcile_an_idle(&mut self, o: usize) -> bool {
        let (moment, scene) = (self.moment(), self.scene);
        let operator = &mut self.operators[o];
        let due = operator.due.clone();
        let is_idle = |due| operator.reconcile_if_idle(due, moment, |request| scene.has_written(request));
        let found = due.iter().any(is_idle);
        if found {
            self.write_statuses(o);
        }
        found
    }

    /// Writes the statuses of pools that an operator has just sent, where they are written at once.
    fn write_statuses(&mut self, o: usize) {
        let (scene, now) = (self.scene, self.api_server_time());
        let writes_status = |in_flight: &Arc<InFlight>| scene.has_written(in_flight.request());
        while let Some(r) = self.operators[o].in_flight.iter().position(writes_status) {
            let in_flight = Arc::clone(&self.operators[o].in_flight[r]);
            let outcome = send::serve(&mut self.api_server, in_flight.request(), &now);
            self.spread();
            let moment = self.moment();
            self.operators[o].take_over(r, outcome, moment);
        }
    }

    /// Every watch gets what is new: it is on its way, or, when its kind does not lag, there.
    fn spread(&mut self) {
        let now = self.now();
        for event in std::mem::take(&mut self.api_server.news) {
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

/// The end of the second that `at` lies in.
fn end_of_second(at: Timestamp) -> Timestamp {
    let seconds = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    Timestamp::from_second(seconds).unwrap()
}
