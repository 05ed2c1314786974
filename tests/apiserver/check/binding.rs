//! Checks I1, I2 and I3: which claim holds which pod.
//!
//! I1: a pod belongs to at most one claim, ever, and a claim to as many pods as it asks for. I2: a claimed pod is deleted
//! only with its claim. I3: a claim takes a pod that is usable at that moment.

use super::claim::Claim;
use super::world::{Owner, Pod, Pool, Step};
use super::{Figures, Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Binding {
    /// Claims that ever held the pod, by the pod's UID.
    holders: BTreeMap<String, BTreeSet<String>>,
    /// When the pod became its present claim's, by the pod's UID.
    held: BTreeMap<String, Held>,
    /// The claim whose status named the pod first, by the pod's UID.
    published: BTreeMap<String, String>,
    labels: Labels,
}

/// When a pod became a claim's.
#[derive(Clone, Copy)]
pub struct Held {
    /// When the binding was decided on at the latest.
    pub decided: Timestamp,
    /// When the watcher saw the binding.
    pub seen: Timestamp,
}

/// What labels each pool has had since when.
#[derive(Default)]
struct Labels(BTreeMap<String, Vec<Labelled>>);

type Labelled = (Timestamp, BTreeMap<String, String>);

impl Labels {
    fn note(&mut self, pool: &Pool, now: Timestamp) {
        let of_pool = self.0.entry(pool.name.clone()).or_default();
        if of_pool.last().is_none_or(|(_, labels)| *labels != pool.labels) {
            of_pool.push((now, pool.labels.clone()));
        }
    }

    /// A pool will do that had the labels at some moment since the claim came: a binding may rest on what was true a
    /// moment ago.
    fn wrong_pool(&self, claim: &Claim, pool: &str) -> Option<String> {
        let had = self.0.get(pool).map_or(&[][..], Vec::as_slice);
        let since = had.iter().rposition(|(at, _)| *at <= claim.came_at).unwrap_or(0);
        let none = BTreeMap::new();
        let mut since_it_came = had.iter().skip(since).map(|(_, labels)| labels).chain([&none]);
        let accepted = since_it_came.any(|labels| claim.accepts(pool, labels));
        let asked = || {
            claim
                .selector
                .as_ref()
                .map_or(claim.pool.clone(), |s| format!("one with {s:?}"))
        };
        (!accepted).then(|| format!("of pool {pool} and the claim asks for {}", asked()))
    }
}

impl Binding {
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        match step {
            Step::Pod(before, Some(after)) => {
                self.has_one_claim(scene, after, out, figures);
                stays_with_its_claim(before.as_ref(), after, out);
                claimed_pod_is_usable(scene, &self.labels, before.as_ref(), after, out, figures);
                if after.terminating {
                    deleted_only_with_its_claim(scene, before.as_ref(), out);
                }
            }
            Step::Pod(before, None) => deleted_only_with_its_claim(scene, before.as_ref(), out),
            // What others wrote into it is nothing that the operator said.
            Step::Claim(_, Some(after)) if scene.rules.forged.contains(&after.name) => {}
            Step::Claim(before, Some(after)) => {
                self.publishes_held_pods(scene, after, out);
                status_stays_true(before.as_ref(), after, out);
            }
            Step::Pool(Some(pool)) => self.labels.note(pool, scene.now),
            Step::Claim(_, None) | Step::Pool(None) => {}
        }
    }

    fn has_one_claim(&mut self, scene: &Scene, pod: &Pod, out: &mut Vec<Finding>, figures: &mut Figures) {
        let by_owner = match &pod.owner {
            Owner::Claim { uid, .. } => Some(uid),
            _ => None,
        };
        let by_label =
            Some(&pod.claim_uid).filter(|uid| !uid.is_empty() && !scene.rules.forged.contains(&pod.name));
        let claims: BTreeSet<&String> = by_owner.into_iter().chain(by_label).collect();
        for claim in claims {
            let holders = self.holders.entry(pod.uid.clone()).or_default();
            if holders.insert(claim.clone()) && holders.len() > 1 {
                let mut about: Vec<&str> = holders.iter().map(String::as_str).collect();
                about.push(&pod.uid);
                let sentence = format!("pod {} has belonged to {} claims", pod.name, holders.len());
                out.push(Finding::new("I1", &about, sentence));
            }
            let before = scene.world.pods.get(&pod.uid);
            if before.is_none_or(|b| b.claim() != Some(claim)) && pod.is_alive() {
                self.holds_as_many_as_it_asks_for(scene, claim, pod, out, figures);
            }
        }
    }

    /// I1, at the event in which a pod becomes the claim's.
    fn holds_as_many_as_it_asks_for(
        &mut self,
        scene: &Scene,
        claim: &String,
        pod: &Pod,
        out: &mut Vec<Finding>,
        figures: &mut Figures,
    ) {
        let held = Held {
            decided: scene.rules.requests.decided("patch", &pod.name, scene.now),
            seen: scene.now,
        };
        self.held.insert(pod.uid.clone(), held);
        let others = scene.world.pods.values();
        let mut about: Vec<&str> = others
            .filter(|p| p.uid != pod.uid && p.is_alive() && p.claim() == Some(claim))
            .map(|p| p.uid.as_str())
            .collect();
        let asking = scene.world.claims.get(claim);
        let wanted = asking.map_or(1, |c| c.wanted);
        if about.len() < wanted {
            return;
        }
        figures.spare_holds += 1;
        let mut earlier = about.iter().filter_map(|uid| self.held.get(*uid));
        let excused = scene.rules.two_operators
            || earlier.any(|earlier| scene.rules.is_excused_by_a_start(asking, *earlier, held));
        if !excused {
            let sentence = format!(
                "a claim for {wanted} holds {} pods, {} the latest",
                about.len() + 1,
                pod.name
            );
            about.extend([claim.as_str(), &pod.uid]);
            out.push(Finding::new("I1", &about, sentence));
        }
    }

    fn publishes_held_pods(&mut self, scene: &Scene, claim: &Claim, out: &mut Vec<Finding>) {
        let name = &claim.name;
        if claim.sandboxes.len() > claim.wanted {
            let sentence = format!("claim {name} lists {} sandboxes", claim.sandboxes.len());
            out.push(Finding::new("I1", &[&claim.uid], sentence));
        }
        if claim.phase == "Bound" && claim.sandboxes.len() < claim.wanted {
            let sentence = format!(
                "claim {name} is Bound to {} of {} sandboxes",
                claim.sandboxes.len(),
                claim.wanted
            );
            out.push(Finding::new("I1", &[&claim.uid], sentence));
        }
        for pod in &claim.sandboxes {
            let first = self
                .published
                .entry(pod.clone())
                .or_insert_with(|| claim.uid.clone());
            if *first != claim.uid {
                let sentence = format!("claim {name} lists a pod that another claim has listed");
                out.push(Finding::new("I1", &[pod, first, &claim.uid], sentence));
            }
            let holder = scene.world.pods.get(pod).map(Pod::claim);
            if holder.is_some_and(|holder| holder != Some(&claim.uid)) {
                let sentence = format!("claim {name} lists a pod that it does not hold");
                out.push(Finding::new("I1", &[pod, &claim.uid], sentence));
            }
        }
    }
}

fn stays_with_its_claim(before: Option<&Pod>, after: &Pod, out: &mut Vec<Finding>) {
    if let Some(Pod {
        owner: owner @ Owner::Claim { .. },
        ..
    }) = before
        && *owner != after.owner
    {
        let sentence = format!(
            "pod {} was taken from its claim and now belongs to {:?}",
            after.name, after.owner
        );
        out.push(Finding::new("I1", &[&after.uid], sentence));
    }
}

/// I3, at the event in which a pod becomes a claim's.
fn claimed_pod_is_usable(
    scene: &Scene,
    labels: &Labels,
    before: Option<&Pod>,
    after: &Pod,
    out: &mut Vec<Finding>,
    figures: &mut Figures,
) {
    let Owner::Claim {
        uid: claim_uid,
        name: claim,
    } = &after.owner
    else {
        return;
    };
    if before.is_some_and(|b| matches!(b.owner, Owner::Claim { .. })) {
        return;
    }
    figures.served += 1;
    let mut faults = Vec::new();
    // After a gap the pod is seen in its present state, maybe long after it was claimed.
    if !scene.gap {
        faults.extend((after.phase != "Running").then(|| format!("in phase {}", after.phase)));
        faults.extend(after.ready_since.is_none().then(|| "not Ready".into()));
        faults.extend(after.terminating.then(|| "terminating".into()));
        faults.extend(too_young(scene, after));
        faults.extend(after.gated.then(|| "held by a scheduling gate".into()));
        match before {
            None => faults.push("never seen unclaimed".into()),
            Some(b) if !b.is_unclaimed(&after.pool) => {
                faults.push(format!(
                    "not the pool's to give (state {:?}, owner {:?})",
                    b.state, b.owner
                ));
            }
            Some(_) => {}
        }
    }
    faults.extend((after.state != "claimed").then(|| format!("left in state {:?}", after.state)));
    let asked = scene.world.claims.get(claim_uid);
    faults.extend(asked.and_then(|claim| labels.wrong_pool(claim, &after.pool)));
    let pool = scene.world.pools.get(&after.pool);
    if asked.is_some_and(|c| c.latest)
        && pool
            .is_some_and(|p| after.revision == p.current_revision && p.current_revision != p.update_revision)
    {
        faults.push(format!(
            "of revision {}, which the claim excludes",
            after.revision
        ));
    }
    if !faults.is_empty() {
        let sentence = format!(
            "claim {claim} was given pod {}, which was {}",
            after.name,
            faults.join(", ")
        );
        out.push(Finding::new("I3", &[&after.uid, claim_uid], sentence));
    }
}

/// Available is what has been Ready for `minReadySeconds`; the time since when has whole seconds only, and
/// cuts off, so this never accuses too early.
fn too_young(scene: &Scene, pod: &Pod) -> Option<String> {
    let wanted = scene.world.pools.get(&pod.pool)?.min_ready;
    let ready_for = scene.now.duration_since(pod.ready_since?);
    (ready_for < SignedDuration::from_secs(wanted)).then(|| format!("Ready for {ready_for:#} of {wanted} s"))
}

/// I2, at the event in which a pod starts to go.
fn deleted_only_with_its_claim(scene: &Scene, before: Option<&Pod>, out: &mut Vec<Finding>) {
    let Some(pod) = before.filter(|p| !p.terminating) else {
        return;
    };
    let Owner::Claim { uid, name } = &pod.owner else {
        return;
    };
    let Some(claim) = scene.world.claims.get(uid) else {
        return;
    };
    let expired = claim.phase == "Expired" && !claim.retains;
    let published = claim.sandboxes.contains(&pod.uid) && !expired;
    if published && !claim.terminating && !scene.rules.deleted_by_others.contains(&pod.uid) {
        let sentence = format!("pod {} was deleted while claim {name} has it", pod.name);
        out.push(Finding::new("I2", &[&pod.uid, uid], sentence));
    }
}

/// What a claim's status has said stays said.
fn status_stays_true(before: Option<&Claim>, after: &Claim, out: &mut Vec<Finding>) {
    let Some(before) = before else { return };
    let name = &after.name;
    if !before.sandboxes.is_empty() && before.sandboxes != after.sandboxes && !after.replaces {
        let sentence = format!(
            "claim {name} changed its sandbox from {:?} to {:?}",
            before.sandboxes, after.sandboxes
        );
        out.push(Finding::new("I1", &[&after.uid], sentence));
    }
    let turned_back = match before.phase.as_str() {
        "Failed" => after.phase != "Failed",
        "Expired" => after.phase != "Expired",
        "Bound" if after.replaces => after.phase.is_empty(),
        "Bound" => !matches!(after.phase.as_str(), "Bound" | "Failed" | "Expired"),
        _ => false,
    };
    if turned_back {
        let sentence = format!(
            "claim {name} went from phase {} back to {:?}",
            before.phase, after.phase
        );
        out.push(Finding::new("I1", &[&after.uid], sentence));
    }
}
