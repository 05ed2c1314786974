//! Checks that the checker reports real violations made by hand.

use super::sandbox;
use crate::api::{Api, CLAIMS, NAMESPACES, PODS, POOLS};
use crate::check::deletions::not_deleted;
use crate::check::{Rules, Verdict};
use crate::history::Watcher;
use crate::objects::{claim, pool};
use crate::scene::{Scene, create_pod_quota, judge, make_namespace};
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// What is done to a pool of four, of which one may be missing, and to the sandbox of claim `victim`: the sandbox, and the
/// names of the others.
type Violation = fn(&Setup, held: &str, warm: &[String]) -> Result<(), String>;

struct Setup<'a> {
    /// The user who runs the tests.
    user: &'a Api,
    /// The operator's own account, beside the operator.
    operator: Api,
    namespace: &'a str,
}

/// The verdict on the history of a namespace in which that is done.
fn committed(scene: &Scene, deed: Violation) -> Result<Verdict, String> {
    let (lab, elsewhere) = (scene.lab, format!("{}-2", scene.namespace));
    let elsewhere = elsewhere.as_str();
    let (api, cluster) = (&lab.api, &lab.cluster);
    make_namespace(lab, elsewhere)?;
    let path = cluster.dir.join("history").join(format!("{elsewhere}.jsonl"));
    let watcher = Watcher::start(api, elsewhere, &path)?;
    api.create(
        POOLS,
        elsewhere,
        &pool("python", 4, &json!({"updateStrategy": {"maxUnavailable": 1}})),
    )?;
    api.create(CLAIMS, elsewhere, &claim("victim", "python", &json!({})))?;
    let held = wait::until("the claim was bound and the pool full", 30, || {
        let claim = api.get(CLAIMS, elsewhere, "victim")?.unwrap_or_default();
        let pool = api.get(POOLS, elsewhere, "python")?.unwrap_or_default();
        let status = &pool["status"];
        let full = status["available"] == 4 && status["claimed"] == 1;
        wait::ensure(full && claim["status"]["phase"] == "Bound", || {
            format!("{status} {}", claim["status"])
        })?;
        Ok(sandbox(&claim).0)
    })?;
    let warm: Vec<String> = api
        .list(PODS, elsewhere)?
        .iter()
        .filter(|p| p["metadata"]["labels"]["warmpool.dev/state"] == "warm")
        .filter_map(|p| p["metadata"]["name"].as_str().map(String::from))
        .collect();
    // What was true shortly before a deletion excuses it, such as that there was no pool.
    let (rules, since) = (Rules::default(), Timestamp::now());
    let excusing = rules.held_up + rules.unseen + SignedDuration::from_secs(1);
    wait::until("nothing excused a deletion any more", 60, || {
        let elapsed = scene.elapsed(since, Timestamp::now());
        wait::ensure(elapsed > excusing, || format!("{elapsed:#} of {excusing:#}"))
    })?;
    // Otherwise the operator could replace each sandbox before the next is deleted, and never one too many would be missing.
    create_pod_quota(lab, elsewhere, 0)?;
    let crime = Setup {
        user: api,
        operator: lab.as_operator()?,
        namespace: elsewhere,
    };
    deed(&crime, &held, &warm)?;
    // The node's own deletions, which end what was begun.
    wait::until("what was deleted was gone", 30, || {
        let pods = api.list(PODS, elsewhere)?;
        let going = pods
            .iter()
            .find(|p| !p["metadata"]["deletionTimestamp"].is_null());
        wait::ensure(going.is_none(), || format!("{going:?}"))
    })?;
    let events = watcher.finish()?;
    let all = [&[held], &warm[..]].concat();
    let spared = not_deleted(&events, &all);
    wait::ensure(spared.is_empty() && all.len() > 1, || {
        format!("of {all:?}, {spared:?} were not deleted, so there is nothing to judge")
    })?;
    let verdict = judge(lab, elsewhere, &events, &mut Rules::default());
    api.delete(NAMESPACES, "", elsewhere)?;
    verdict
}

fn accused(verdict: &Verdict, rule: &str) -> bool {
    verdict.accusations.iter().any(|a| a.rule == rule)
}

/// The claimed pod is labeled for another claim and then deleted, and so are all unclaimed pods.
pub fn a_breach_by_the_operator_is_accused(scene: &Scene) -> Result<(), String> {
    let verdict = committed(scene, |crime, held, warm| {
        let label = json!({"metadata": {"labels": {"warmpool.dev/claim-uid": "somebody-else"}}});
        crime.operator.merge(PODS, crime.namespace, held, &label)?;
        crime.operator.delete(PODS, crime.namespace, held)?;
        Ok(crime.operator.delete_all(PODS, crime.namespace, warm)?)
    })?;
    ["I1", "I2", "I4"].iter().try_for_each(|rule| {
        wait::ensure(accused(&verdict, rule), || {
            format!("{rule} was broken and not accused: {:?}", verdict.accusations)
        })
    })
}

pub fn what_others_delete_is_not_laid_to_the_operator(scene: &Scene) -> Result<(), String> {
    let verdict = committed(scene, |crime, held, warm| {
        crime.user.delete(PODS, crime.namespace, held)?;
        Ok(crime.user.delete_all(PODS, crime.namespace, warm)?)
    })?;
    wait::ensure(verdict.accusations.is_empty(), || {
        format!("accused: {:?}", verdict.accusations)
    })
}
