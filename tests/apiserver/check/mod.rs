//! Replays a history and reports every event that breaks an invariant.
//!
//! Events are replayed in the order of the API server. The checker reads objects as JSON and shares no code with the
//! operator, so it cannot repeat the operator's mistakes.

mod binding;
mod budget;
mod claim;
pub mod deletions;
mod drains;
mod ends;
pub mod event;
mod hooks;
mod order;
pub mod processor_waits;
pub mod requests;
mod wait_reason;
pub mod waits;
pub mod warm_reports;
mod work_conservation;
pub mod world;
mod writes;

use binding::{Binding, Held};
use budget::Budget;
use claim::Claim;
pub use drains::Drain;
use drains::Drains;
use ends::Ends;
use event::Event;
use jiff::{SignedDuration, Timestamp};
use order::Order;
use processor_waits::ProcessorWaits;
use requests::Requests;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wait_reason::WaitReasons;
use waits::Waits;
use work_conservation::WorkConservation;
use world::World;
use writes::Writes;

/// A request of an operator arrives this long after the operator has ended, at most.
const ARRIVES: SignedDuration = SignedDuration::from_secs(1);

/// The bindings that an operator has in flight at most. So many are lost at most when it ends, and so many connections are
/// opened at once by the next one.
pub const BINDINGS: usize = 32;

/// What a scenario declares about itself.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Pods (by UID) that another user than the operator deleted.
    pub deleted_by_others: BTreeSet<String>,
    /// What operators asked of the API server, and when. Without it, a write counts as decided on when it was seen.
    pub requests: Requests,
    /// The requests that a plan sends at once have connections of their own, so one may arrive this long after a later one was
    /// answered. It counts where the sandboxes of both claims do not show which was decided on first.
    pub reordered: SignedDuration,
    /// How many claims that may happen to, beside one of eight and those in `late_when_new`.
    pub late: usize,
    /// How many claims that may happen to after each outage: the operator opens its connections anew.
    pub late_when_new: usize,
    /// How much later than the watcher an operator may see a claim.
    pub seen_late: SignedDuration,
    /// A binding that fails may be tried again this long after that is known.
    pub retried_after: SignedDuration,
    /// A younger claim may be served this much before an older one, because operators crash again and again, or because two do
    /// not know of each other.
    pub passed_over: SignedDuration,
    /// While a sandbox is available for a claim, that claim or an earlier one is served at least this often. `None` skips
    /// the check, where it is unknown when an operator ran.
    pub idle: Option<SignedDuration>,
    /// Pods and claims (by name) whose labels or status were forged in the operator's name.
    pub forged: BTreeSet<String>,
    /// Requests of an operator that ended may still be executed this long after the next one started.
    pub lingers: SignedDuration,
    /// How long the operator and the API server waited for a processor; see [`Rules::elapsed`].
    pub processor_waits: ProcessorWaits,
    /// Intervals in which no operator ran, or none reached the API server.
    pub operator_down: Vec<(Timestamp, Timestamp)>,
    /// When the watcher took its last look: silence before it is judged as well. The history may lack later writes.
    pub ended: Option<Timestamp>,
    /// A claim that came, or a sandbox that others broke, this shortly before a deletion was decided on could not be known to
    /// who decided; see [`Rules::elapsed`].
    pub unseen: SignedDuration,
    /// A creation or a deletion may arrive this long after what it rests on was true: the spec may just have changed, or a
    /// claim have come or gone.
    pub held_up: SignedDuration,
    /// An operator's clock may be this far from the API server's and from itself a while ago.
    pub clock: SignedDuration,
    /// The nodes that have to go.
    pub drains: Vec<Drain>,
    /// Two operators at once may hold two pods for one claim, as long as they publish one, and may each
    /// create all that is missing, as long as the surplus goes again, and take all that may be missing.
    pub two_operators: bool,
    /// The API server was away or its types changed, so the watcher may have had to list anew.
    pub gaps: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            deleted_by_others: BTreeSet::new(),
            requests: Requests::default(),
            reordered: SignedDuration::from_secs(1),
            late: 2,
            late_when_new: BINDINGS,
            seen_late: SignedDuration::from_secs(1),
            retried_after: SignedDuration::ZERO,
            passed_over: SignedDuration::ZERO,
            idle: Some(SignedDuration::from_secs(5)),
            forged: BTreeSet::new(),
            lingers: SignedDuration::from_secs(5),
            processor_waits: ProcessorWaits::default(),
            operator_down: Vec::new(),
            ended: None,
            unseen: SignedDuration::from_millis(250),
            held_up: SignedDuration::from_secs(2),
            clock: SignedDuration::ZERO,
            drains: Vec::new(),
            two_operators: false,
            gaps: false,
        }
    }
}

impl Rules {
    /// How long it is from `from` to `to` for an operator and an API server that never wait for a processor.
    fn elapsed(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        self.processor_waits.elapsed(from, to)
    }

    /// From when on it is at least `span` to `to` for them.
    fn before(&self, to: Timestamp, span: SignedDuration) -> Timestamp {
        self.processor_waits.before(to, span)
    }

    /// Since when an operator has run without a break, no earlier than `since`; after `now` while none runs.
    fn operator_up_since(&self, since: Timestamp, now: Timestamp) -> Timestamp {
        let until_now = self.operator_down.iter().filter(|(from, _)| *from <= now);
        until_now.fold(since, |since, (_, to)| since.max(*to))
    }

    /// The number of the outage with which requests were lost that were sent together with one that arrived at `at`. An
    /// operator sends them within `reordered`. Later ones than its own come from the next operator, which has a plan of its
    /// own. An operator that outlives an outage of the API server carries on with what it had decided before.
    fn outage_that_lost(&self, at: Timestamp) -> Option<usize> {
        let after = if self.gaps { self.reordered } else { ARRIVES };
        let lost = |(from, to): &(Timestamp, Timestamp)| {
            self.elapsed(at, *from) <= self.reordered && self.elapsed(*to, at) <= after
        };
        self.operator_down.iter().position(lost)
    }

    /// How many outages were over at `at`.
    fn outages_before(&self, at: Timestamp) -> usize {
        self.operator_down.iter().filter(|(_, to)| *to <= at).count()
    }

    /// Whether an operator that started decided on one of two bindings for a claim and could not know of the other: that one
    /// had arrived before the start, for a claim that was there, and was stored after it, at most `lingers` later.
    fn is_excused_by_a_start(&self, claim: Option<&Claim>, a: Held, b: Held) -> bool {
        let excuses = |start: Timestamp| {
            let was_decided = |held: Held| held.decided <= start;
            let lingered = |held: Held| {
                was_decided(held) && start < held.seen && self.elapsed(start, held.seen) <= self.lingers
            };
            let came_before = claim.is_none_or(|claim| claim.came_at <= start);
            came_before && (lingered(a) && !was_decided(b) || lingered(b) && !was_decided(a))
        };
        self.operator_down.iter().any(|(_, start)| excuses(*start))
    }

    /// An operator started since knows the claim from a list, which shows the creation time in whole seconds and the
    /// last write.
    fn is_known_from_a_list(&self, claim: &Claim, now: Timestamp) -> bool {
        self.operator_down
            .iter()
            .any(|(from, to)| *from <= now && claim.came_at <= *to)
    }
}

/// A breach, before its proof is attached.
#[derive(Debug)]
struct Finding {
    rule: &'static str,
    sentence: String,
    /// UIDs of the objects whose events prove it.
    about: Vec<String>,
}

impl Finding {
    fn new(rule: &'static str, about: &[&str], sentence: String) -> Self {
        Self {
            rule,
            sentence,
            about: about.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A breach of an invariant and the events that prove it.
#[derive(Debug)]
pub struct Accusation {
    pub rule: &'static str,
    sentence: String,
    proof: Vec<String>,
}

impl fmt::Display for Accusation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.rule, self.sentence)?;
        self.proof.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// What was measured on the way.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub events: usize,
    pub gaps: usize,
    /// Claims that a pod was bound to.
    pub served: usize,
    /// How long each claim waited while a sandbox was available for it.
    pub waits: Waits,
    /// The longest of these, and the claim's name.
    pub idle_wait: (SignedDuration, String),
    /// Claims whose binding arrived after that of a younger claim, decided on together with it, was answered.
    pub late: usize,
    /// How long after, at most.
    pub reordered: SignedDuration,
    /// Writes of operators on claims and pods that were carried out.
    pub writes: usize,
    /// Second pods held for one claim.
    pub spare_holds: usize,
    /// Deletions below the budget that a loss excused, and the longest time from a loss to the decision.
    pub excused: usize,
    pub unseen: SignedDuration,
    /// Fewest available sandboxes of each pool while a node had to go.
    pub least_in_drain: BTreeMap<String, i64>,
}

impl Figures {
    fn waited(&mut self, claim: &str, wait: SignedDuration) {
        self.waits.add(wait);
        if wait > self.idle_wait.0 {
            self.idle_wait = (wait, claim.into());
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, claim) = &self.idle_wait;
        write!(f, "{} events, {} claims served", self.events, self.served)?;
        write!(f, ", waits with a sandbox available {}", self.waits)?;
        if !claim.is_empty() {
            write!(f, " ({claim})")?;
        }
        for (pool, least) in &self.least_in_drain {
            write!(f, ", least available of pool {pool} in a drain {least}")?;
        }
        for (count, description) in [
            (self.writes, "writes on claims and their sandboxes"),
            (self.late, "bindings arrived after a later one was answered"),
            (
                self.excused,
                "deletions excused by losses that could not be known",
            ),
            (self.spare_holds, "second pods held"),
            (self.gaps, "gaps in the history"),
        ] {
            if count > 0 {
                write!(f, ", {count} {description}")?;
            }
        }
        Ok(())
    }
}

/// The outcome of a replay.
#[derive(Debug)]
pub struct Verdict {
    pub accusations: Vec<Accusation>,
    pub figures: Figures,
}

/// Sorts the events into the order in which they happened.
pub fn sort(events: &mut [Event]) {
    events.sort_by_key(|e| e.rv);
}

/// Replays `events`, which must be sorted, and judges every one of them.
pub fn judge(events: &[Event], rules: &Rules) -> Verdict {
    let (mut work_conservation, mut order) = (WorkConservation::default(), Order::default());
    let (mut binding, mut budget) = (Binding::default(), Budget::default());
    let mut drains = Drains::default();
    let (mut ends, mut wait_reasons) = (Ends::default(), WaitReasons::default());
    let mut writes = Writes::default();
    let (mut world, mut trail, mut accusations) = (World::default(), Trail::default(), Vec::new());
    let mut figures = Figures {
        events: events.len(),
        ..Figures::default()
    };
    let mut now = Timestamp::MIN;
    for event in events {
        // Two watches deliver side by side: the order of the events is sure, their times only nearly.
        now = now.max(event.at);
        trail.note(event);
        let step = world.step(event);
        let mut findings = Vec::new();
        if event.gap {
            figures.gaps += 1;
            if !rules.gaps {
                findings.push(Finding::new(
                    "history",
                    &[event.uid()],
                    "the history has a gap here".into(),
                ));
            }
        }
        let scene = Scene {
            now,
            gap: event.gap,
            rules,
            world: &world,
        };
        binding.judge(&scene, &step, &mut findings, &mut figures);
        ends.judge(&scene, &step, &mut findings);
        budget.judge(&scene, &step, &mut findings, &mut figures);
        drains.judge(&scene, &step, &mut findings);
        hooks::judge(&scene, &step, &mut findings);
        order.judge(&scene, &step, &mut findings, &mut figures);
        work_conservation.judge(&scene, &step, &mut findings, &mut figures);
        wait_reasons.judge(&scene, &step, &mut findings);
        writes.judge(&scene, event, &mut findings);
        world.apply(event, step);
        budget.note(&world, now);
        drains::measure(&world, rules, now, &mut figures);
        work_conservation.note(&world, now, &mut figures);
        accusations.extend(findings.into_iter().map(|f| trail.prove(f)));
    }
    let scene = Scene {
        now: rules.ended.map_or(now, |ended| ended.max(now)),
        gap: false,
        rules,
        world: &world,
    };
    let mut findings = Vec::new();
    order.finish(&scene, &mut findings);
    let may_be_late = rules.late.saturating_add(figures.served / 8);
    let may_be_late = may_be_late.saturating_add(order.late_when_new(rules));
    if figures.late > may_be_late {
        let sentence = format!(
            "the bindings of {} of {} claims arrived after that of a younger claim was answered, and {may_be_late} may",
            figures.late, figures.served
        );
        findings.push(Finding::new("I7", &[], sentence));
    }
    work_conservation.finish(&scene, &mut findings, &mut figures);
    wait_reasons.advance_time(&scene, &mut findings);
    writes.finish(&scene, &mut findings, &mut figures);
    accusations.extend(findings.into_iter().map(|f| trail.prove(f)));
    Verdict { accusations, figures }
}

/// What a rule may look at: the world just before the event.
struct Scene<'a> {
    now: Timestamp,
    gap: bool,
    rules: &'a Rules,
    world: &'a World,
}

/// Calls `look` with the world after every event.
pub fn replay(events: &[Event], mut inspect: impl FnMut(&World, &Event)) {
    let mut world = World::default();
    for event in events {
        let step = world.step(event);
        world.apply(event, step);
        inspect(&world, event);
    }
}

/// Every event of every object, as proof.
#[derive(Default)]
struct Trail(BTreeMap<String, Vec<(u64, String)>>);

/// Events that a proof shows at most, of one object and of all: the latest ones.
const SHOWN_OF_ONE: usize = 12;
const SHOWN: usize = 40;

impl Trail {
    fn note(&mut self, event: &Event) {
        self.0
            .entry(event.uid().into())
            .or_default()
            .push((event.rv, event.to_string()));
    }

    fn prove(&self, finding: Finding) -> Accusation {
        let mut lines: Vec<&(u64, String)> = Vec::new();
        for uid in &finding.about {
            let all = self.0.get(uid).map_or(&[][..], Vec::as_slice);
            lines.extend(all.iter().skip(all.len().saturating_sub(SHOWN_OF_ONE)));
        }
        lines.sort();
        lines.dedup();
        let shown = lines.iter().skip(lines.len().saturating_sub(SHOWN));
        let proof = shown.map(|(_, line)| line.clone()).collect();
        Accusation {
            rule: finding.rule,
            sentence: finding.sentence,
            proof,
        }
    }
}
