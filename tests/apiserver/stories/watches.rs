//! Checks claims while watches break, expire, lose bookmarks or go silent.

use super::faults::{FAILS_FOR, a_full_pool, expect_faults, under_load};
use super::metrics::served;
use super::rollouts::everything_unclaimed_runs;
use super::{burst, in_phase};
use crate::check::event::{Kind, is_ready, text};
use crate::cluster_state::{label, wait_until_at_rest};
use crate::faults::{Fault, Rule};
use crate::http;
use crate::objects::NEW_IMAGE;
use crate::scene::Scene;
use crate::wait;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

const WATCH: &[&str] = &["watch"];
/// The watches that serving a claim depends on.
const WATCHES_THAT_MATTER: &[&str] = &["watch sandboxclaims", "watch pods"];
/// The watches without which the operator plans nothing.
const REQUIRED_WATCHES: &[&str] = &[
    "watch pools",
    "watch sandboxclaims",
    "watch pods",
    "watch controllerrevisions",
    "watch podtemplates",
];
const REQUIRED_LISTS: &[&str] = &["list pools", "list sandboxclaims", "list pods"];
/// The namespace of a request about the whole cluster.
const EVERYWHERE: &str = "";
const LIST_AND_WATCH: &[&str] = &["list", "watch"];

/// The operator looks after a watch without news once in 25 s; the rest is for a slow machine.
const NOTICED_WITHIN: u64 = 60;

pub fn watches_that_break_expire_and_have_no_bookmarks_miss_nothing(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    // A watch that breaks again and again is opened later each time, and shows nothing before that.
    scene.declare(|rules| rules.unseen = FAILS_FOR);
    let faults = &scene.lab.proxy()?.faults;
    a_full_pool(scene)?;
    // The watches are about all namespaces, so other tests run through the same faults.
    let breaking = [
        (Fault::Broken, 0.05),
        (Fault::GoneInside, 0.05),
        (Fault::Gone, 0.3),
    ];
    let rule = |(fault, chance)| Rule::of(fault, chance, WATCH).within(EVERYWHERE);
    let no_bookmarks = || rule((Fault::NoBookmarks, 1.0));
    faults.add(breaking.map(|fault| rule(fault).and_first(WATCHES_THAT_MATTER)));
    faults.add([no_bookmarks()]);
    let loaded = under_load(scene, || {
        wait::until("each fault that ends a watch had struck", 40, || {
            let struck = |(fault, _)| faults.has_struck_each(EVERYWHERE, fault, WATCHES_THAT_MATTER);
            breaking.into_iter().try_for_each(struck)
        })?;
        // A bookmark comes at the end of a watch, some 20 s after its beginning, if nothing breaks it before.
        faults.replace(Some(EVERYWHERE), [no_bookmarks()]);
        wait::until("a bookmark was held back", 45, || {
            faults.has_struck(EVERYWHERE, Fault::NoBookmarks)
        })
    });
    faults.stop(Some(EVERYWHERE));
    loaded?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    scene.lab.print_at_end(format!(
        "faults in {}: {:?}",
        scene.namespace,
        faults.struck(EVERYWHERE)
    ));
    Ok(())
}

/// Has so many claims come, and waits until each is served.
fn claims_are_served(scene: &Scene, name: &str, count: usize) -> Result<(), String> {
    burst(scene, name, count, "python", &json!({}))?
        .iter()
        .try_for_each(|claim| in_phase(scene, claim, "Bound", NOTICED_WITHIN).map(drop))
}

/// Has claims come while nothing comes through the watches, and waits until each is served.
fn claims_in_silence(scene: &Scene, name: &str) -> Result<(), String> {
    // A claim in a silent watch is seen no earlier than the silence is noticed.
    let noticed_within = SignedDuration::from_secs(NOTICED_WITHIN.cast_signed());
    scene.declare(|rules| rules.idle = Some(noticed_within));
    let faults = &scene.lab.proxy()?.faults;
    faults.silence();
    let began = Instant::now();
    claims_are_served(scene, name, 5)?;
    let waited = began.elapsed().as_secs_f64();
    faults.has_silenced()?;
    scene.lab.print_at_end(format!(
        "{}: claims were served after {waited:.1} s",
        scene.namespace
    ));
    wait_until_at_rest(scene, 60)
}

pub fn watches_gone_silent_are_noticed_and_opened_anew(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let operator = scene.lab.start_operator_behind_faults(&[])?;
    a_full_pool(scene)?;
    claims_in_silence(scene, "run")?;
    operator.stop()
}

pub fn a_watch_that_fails_for_half_a_minute_fails_readiness_by_name(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let proxy = scene.lab.proxy()?;
    let operator = scene.lab.start_operator_as(
        &proxy.kubeconfig,
        &["--leader-elect=false", "--health-probe-bind-address=127.0.0.1:0"],
    )?;
    let health = served(&operator, "health-probe-bind-address")?;
    a_full_pool(scene)?;
    let ready = || {
        let answer = http::get(&health, "/readyz")?;
        wait::ensure(answer == (200, "ok".to_string()), || format!("{answer:?}"))
    };
    ready()?;
    proxy
        .faults
        .add([Rule::of(Fault::Refused(500), 1.0, LIST_AND_WATCH).on("pods")]);
    proxy.faults.silence();
    let broken = Instant::now();
    let others = ["Pool:", "SandboxClaim:", "Node:"];
    wait::until("it named Pod and no other", 2 * NOTICED_WITHIN, || {
        let (code, text) = http::get(&health, "/readyz?verbose")?;
        let named =
            text.contains("[-]watches failed: Pod: the watch has failed for ") && text.contains("[+]ping ok");
        // The silent watches of other kinds may take longer to be open again.
        let alone = others.iter().all(|other| !text.contains(other));
        wait::ensure(code == 500 && named && alone, || format!("{code} {text}"))
    })?;
    // The last answer to the watch is at most as old as a watch lasts when it breaks.
    let after = broken.elapsed();
    wait::ensure(after > Duration::from_secs(5), || {
        format!("it failed after {after:?}")
    })?;
    wait::ensure(http::get(&health, "/livez")?.0 == 200, || {
        "it is to be restarted".into()
    })?;
    proxy.faults.stop(None);
    wait::until("it was ready again", NOTICED_WITHIN, ready)?;
    claims_in_silence(scene, "run")?;
    operator.stop()
}

/// An API server reports an expired watch inside the watch; a proxy before it may answer 410 instead.
pub fn watches_refused_as_expired_list_anew(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let operator = scene.lab.start_operator_behind_faults(&[])?;
    a_full_pool(scene)?;
    let faults = &scene.lab.proxy()?.faults;
    faults.add([Rule::of(Fault::Gone, 1.0, WATCH).within(EVERYWHERE)]);
    wait::until("all watches have ended", NOTICED_WITHIN, || {
        let struck = faults.struck(EVERYWHERE);
        let refused = struck.get(&Fault::Gone.to_string()).copied().unwrap_or(0);
        wait::ensure(refused >= 20, || format!("{struck:?}"))?;
        faults.has_struck_each(EVERYWHERE, Fault::Gone, REQUIRED_WATCHES)
    })?;
    claims_are_served(scene, "run", 5)?;
    what_only_a_list_shows_as_gone_is_replaced(scene)?;
    faults.stop(None);
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

/// Removes an unclaimed sandbox of the pool of 10 at once, while no watch shows it: a list shows it as it was, or not at all. The
/// oldest one has long been shown.
fn what_only_a_list_shows_as_gone_is_replaced(scene: &Scene) -> Result<(), String> {
    let unclaimed = |pod: &Value| label(pod, "state") == "warm" && is_ready(pod);
    let is_full = || {
        let count = scene.count(Kind::Pod, unclaimed);
        wait::ensure(count == 10, || format!("there are {count} sandboxes"))
    };
    wait::until("the pool was full again", NOTICED_WITHIN, is_full)?;
    let pods = scene.pods()?;
    let created = |pod: &&Value| text(pod, "/metadata/creationTimestamp").to_string();
    let pod = pods.iter().filter(|pod| unclaimed(pod)).min_by_key(created);
    let pod = pod.map_or("", |pod| text(pod, "/metadata/name"));
    scene.kubectl(&["delete", "pod", pod, "--grace-period=0", "--force"], None)?;
    wait::until("the sandbox was gone", NOTICED_WITHIN, || {
        let count = scene.count(Kind::Pod, |other| text(other, "/metadata/name") == pod);
        wait::ensure(count == 0, || format!("pod {pod} is still there"))
    })?;
    wait::until("the sandbox that was gone was replaced", NOTICED_WITHIN, is_full)
}

pub fn lists_and_watches_that_hang_are_given_up_and_repeated(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let proxy = scene.lab.proxy()?;
    proxy.faults.add([Rule::of(Fault::Hangs, 1.0, LIST_AND_WATCH)]);
    let operator = scene.lab.start_operator_behind_faults(&[])?;
    let hang = |calls| {
        wait::until("each had hung", NOTICED_WITHIN, || {
            proxy.faults.has_struck_each(EVERYWHERE, Fault::Hangs, calls)
        })
    };
    hang(REQUIRED_LISTS)?;
    sleep(Duration::from_secs(3));
    proxy.faults.stop(None);
    a_full_pool(scene)?;
    proxy.faults.add([Rule::of(Fault::Hangs, 1.0, LIST_AND_WATCH)]);
    proxy.faults.silence();
    sleep(Duration::from_secs(30));
    hang(REQUIRED_WATCHES)?;
    proxy.faults.stop(None);
    // A claim that is served shows that the watches are open again.
    claims_are_served(scene, "first", 1)?;
    wait_until_at_rest(scene, 60)?;
    claims_in_silence(scene, "run")?;
    operator.stop()
}
