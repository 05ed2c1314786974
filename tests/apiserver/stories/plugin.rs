//! Checks `kubectl warmpool rollout` from outside.

use super::held::{held, let_go_until_at_rest};
use super::rollouts::everything_unclaimed_runs;
use super::{bound, pool_says};
use crate::api::{POOLS, REVISIONS};
use crate::check::event::text;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, sim, with};
use crate::plugin::{Call, rollout};
use crate::program::Running;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

const ROLLED_OUT: &str = "pool \"python\" successfully rolled out";

fn generation(scene: &Scene) -> Result<Value, String> {
    Ok(scene.pool("python")?["metadata"]["generation"].clone())
}

fn uids(scene: &Scene) -> Result<Vec<String>, String> {
    let state = ClusterState::read(scene)?;
    let unclaimed = state.unclaimed("python").into_iter();
    Ok(unclaimed.map(|p| text(p, "/metadata/uid").to_string()).collect())
}

fn because(scene: &Scene, cause: &str) -> Result<(), String> {
    let annotations = json!({"kubernetes.io/change-cause": cause});
    scene.patch_pool("python", &json!({"metadata": {"annotations": annotations}}))
}

/// Rolls to an image and sees it through.
fn rolled_to(scene: &Scene, image: &str) -> Result<(), String> {
    scene.roll_to("python", image)?;
    wait_until_at_rest(scene, 60)
}

/// Waits until the pool tells that so many of its sandboxes are of the latest template.
fn are_updated(scene: &Scene, count: usize) -> Result<(), String> {
    wait::until(&format!("{count} sandboxes were updated"), 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["updated"] == count, || status.to_string())
    })
}

fn lists(scene: &Scene, rows: &str) -> Result<(), String> {
    let expected = format!("pool.warmpool.dev/python\nREVISION  CHANGE-CAUSE\n{rows}");
    wait::until("the history was as expected", 30, || {
        rollout(scene, &["history", "python"])?.is(&expected)
    })
}

pub fn a_rollout_is_followed_to_its_end(scene: &Scene) -> Result<(), String> {
    let spec = with(
        sim(&[("ready-after", "1500ms")]),
        &json!({"updateStrategy": {"maxUnavailable": 2}}),
    );
    scene.create_pool(&pool("python", 6, &spec))?;
    rollout(scene, &["status", "pool/python"])?.ends_with(ROLLED_OUT)?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": held(NEW_IMAGE)}))?;
    are_updated(scene, 2)?;
    let following = Call::of(scene, &["rollout", "status", "python", "--timeout=2m"]).start()?;
    following.has_begun()?;
    let_go_until_at_rest(scene)?;
    let said = following.end()?;
    let lines = said.ends_with(ROLLED_OUT)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    let has_line = |end: &str| lines.iter().any(|line| line.ends_with(end));
    wait::ensure(has_line(" out of 6 new sandboxes have been updated..."), || {
        format!("{said:?}")
    })?;
    rollout(scene, &["status", "python", "--watch=false"])?.is(&format!("{ROLLED_OUT}\n"))?;
    wait_until_at_rest(scene, 60)
}

pub fn a_rollout_that_does_not_end_is_given_up_and_undone(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": sim(&[("hold", "true")])}))?;
    are_updated(scene, 1)?;
    let said = rollout(scene, &["status", "python", "--timeout=10s"])?;
    let line = "Waiting for pool \"python\" rollout to finish: 1 out of 4 new sandboxes have been updated...";
    let gave_up = said.code == Some(1)
        && said.out.lines().last() == Some(line)
        && said
            .err
            .starts_with("error: timed out waiting for the condition; the pool says: 1 of 4");
    wait::ensure(gave_up, || format!("{said:?}"))?;
    rollout(scene, &["undo", "python"])?.is("pool.warmpool.dev/python rolled back\n")?;
    rollout(scene, &["status", "python", "--timeout=1m"])?.ends_with(ROLLED_OUT)?;
    let template = &scene.pool("python")?["spec"]["template"];
    wait::ensure(template["metadata"]["annotations"].is_null(), || {
        template.to_string()
    })?;
    wait_until_at_rest(scene, 60)
}

pub fn history_lists_what_undo_goes_back_to(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    lists(scene, "1         <none>\n")?;
    because(scene, "first")?;
    lists(scene, "1         first\n")?;
    rolled_to(scene, NEW_IMAGE)?;
    because(scene, "second")?;
    lists(scene, "1         first\n2         second\n")?;
    let details = rollout(scene, &["history", "python", "--revision=1"])?;
    let start =
        "pool.warmpool.dev/python with revision #1\nChange-Cause: first\nPod Template:\n  metadata:\n";
    let shown = details.out.starts_with(start) && details.out.contains(&format!("image: {OLD_IMAGE}"));
    wait::ensure(shown, || format!("{details:?}"))?;
    let object = rollout(scene, &["history", "python", "--revision=2", "-o", "json"])?;
    let object: Value = serde_json::from_str(&object.out).map_err(|e| format!("{e} in {object:?}"))?;
    wait::ensure(
        object["kind"] == "ControllerRevision" && object["revision"] == 2,
        || object.to_string(),
    )?;
    rollout(scene, &["undo", "python"])?.is("pool.warmpool.dev/python rolled back\n")?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", OLD_IMAGE)?;
    lists(scene, "2         second\n3         first\n")?;
    rollout(scene, &["undo", "wp/python", "--to-revision=2"])?
        .is("pool.warmpool.dev/python rolled back\n")?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    lists(scene, "3         first\n4         second\n")
}

pub fn an_undo_that_changes_nothing_writes_nothing(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let nothing = "error: no rollout history found for pool \"python\"\n";
    rollout(scene, &["undo", "python"])?.fails(nothing)?;
    rolled_to(scene, NEW_IMAGE)?;
    let before = generation(scene)?;
    let missing = "error: unable to find specified revision 7 in history\n";
    rollout(scene, &["undo", "python", "--to-revision=7"])?.fails(missing)?;
    rollout(scene, &["history", "python", "--revision=7"])?
        .fails("error: unable to find the specified revision\n")?;
    let skipped = "pool.warmpool.dev/python skipped rollback (current template already matches revision 2)\n";
    rollout(scene, &["undo", "python", "--to-revision=2"])?.is(skipped)?;
    let tried = "pool.warmpool.dev/python rolled back (server dry run)\n";
    rollout(scene, &["undo", "python", "--dry-run=server"])?.is(tried)?;
    let shown = rollout(scene, &["undo", "python", "--dry-run=client"])?;
    let start = "pool.warmpool.dev/python will roll back to revision 1 (dry run)\nPod Template:\n";
    wait::ensure(shown.code == Some(0) && shown.out.starts_with(start), || {
        format!("{shown:?}")
    })?;
    let after = generation(scene)?;
    wait::ensure(before == after, || format!("generation {before} became {after}"))
}

pub fn a_paused_pool_is_not_restarted_nor_undone_before_it_is_resumed(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    rolled_to(scene, NEW_IMAGE)?;
    rollout(scene, &["pause", "python"])?.is("pool.warmpool.dev/python paused\n")?;
    let already = "error: pools.warmpool.dev \"python\" is already paused\n";
    rollout(scene, &["pause", "python"])?.fails(already)?;
    let command = format!("'kubectl warmpool rollout resume python -n {}'", scene.namespace);
    rollout(scene, &["restart", "python"])?.fails(&format!(
        "error: pools.warmpool.dev \"python\" can't restart paused pool (run {command} first)\n"
    ))?;
    rollout(scene, &["undo", "python"])?.fails(&format!(
        "error: you cannot rollback a paused pool; resume it first with {command} and try again\n"
    ))?;
    scene.roll_to("python", "sandbox:3")?;
    pool_says(scene, "python", "Progressing", "Paused")?;
    let said = rollout(scene, &["status", "python", "--watch=false"])?;
    let line = format!(
        "Waiting for pool \"python\" rollout to finish: 0 out of 3 new sandboxes have been updated... \
         It is paused; resume it with {command}\n"
    );
    said.is(&line)?;
    rollout(scene, &["resume", "python", "-o", "name"])?.is("pool.warmpool.dev/python\n")?;
    rollout(scene, &["resume", "python"])?.fails("error: pools.warmpool.dev \"python\" is not paused\n")?;
    rollout(scene, &["status", "python", "--timeout=1m"])?.ends_with(ROLLED_OUT)?;
    everything_unclaimed_runs(scene, "python", "sandbox:3")?;
    wait_until_at_rest(scene, 60)
}

pub fn a_restart_replaces_every_sandbox_once(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("held", "python", &json!({}))?;
    let held = super::sandbox(&bound(scene, "held")?);
    wait_until_at_rest(scene, 60)?;
    let before = uids(scene)?;
    rollout(scene, &["restart", "python"])?.is("pool.warmpool.dev/python restarted\n")?;
    rollout(scene, &["status", "python", "--timeout=1m"])?.ends_with(ROLLED_OUT)?;
    wait_until_at_rest(scene, 60)?;
    let (after, still) = (uids(scene)?, super::sandbox(&scene.claim("held")?));
    let replaced = after.len() == 4 && after.iter().all(|uid| !before.contains(uid)) && still == held;
    wait::ensure(replaced, || {
        format!("{before:?} became {after:?}, and {held:?} became {still:?}")
    })?;
    let too_soon = "error: failed to create patch for python: if restart has already been triggered within \
                    the past second, please wait before attempting to trigger another\n";
    // One after the other may each take a second, so several run at once. They still may miss each other.
    wait::until("a restart came too soon", 60, || {
        let restart = |_| Call::of(scene, &["rollout", "restart", "python"]).start();
        let calls = (0..4).map(restart).collect::<Result<Vec<_>, _>>()?;
        let ended = calls
            .into_iter()
            .map(Running::end)
            .collect::<Result<Vec<_>, _>>()?;
        let is_refused = ended.iter().any(|output| output.fails(too_soon).is_ok());
        wait::ensure(is_refused, || format!("{ended:?}"))
    })?;
    wait_until_at_rest(scene, 90)
}

pub fn a_pinned_revision_is_followed_and_no_other(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &sim(&[("ready-after", "500ms")])))?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    rollout(scene, &["status", "python", "--revision=2", "--timeout=1m"])?.ends_with(ROLLED_OUT)?;
    let other = "error: desired revision (1) is different from the running revision (2)\n";
    rollout(scene, &["status", "python", "--revision=1", "--watch=false"])?.fails(other)?;
    rollout(scene, &["pause", "python"])?.is("pool.warmpool.dev/python paused\n")?;
    scene.roll_to("python", "sandbox:3")?;
    let following = Call::of(
        scene,
        &["rollout", "status", "python", "--revision=3", "--timeout=1m"],
    )
    .start()?;
    following.has_begun()?;
    pool_says(scene, "python", "Progressing", "Paused")?;
    // Back to a template of before, which makes its revision the fourth.
    wait::until("the third revision was stored", 30, || {
        let all = scene.lab.api.list(REVISIONS, &scene.namespace)?;
        wait::ensure(all.iter().any(|r| r["revision"] == 3), || format!("{all:?}"))
    })?;
    scene.roll_to("python", OLD_IMAGE)?;
    let said = following.end()?;
    said.fails("error: desired revision (3) is different from the running revision (4)\n")?;
    rollout(scene, &["resume", "python"])?.is("pool.warmpool.dev/python resumed\n")?;
    wait_until_at_rest(scene, 60)
}

pub fn a_deleted_pool_ends_the_following(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &sim(&[("hold", "true")])))?;
    let following = Call::of(scene, &["rollout", "status", "python"]).start()?;
    following.has_begun()?;
    pool_says(scene, "python", "Progressing", "Progressing")?;
    // A pool deleted and created again is another pool. It creates no sandboxes while those of the first exist.
    scene.lab.api.delete(POOLS, &scene.namespace, "python")?;
    scene.create_pool(&pool("python", 0, &json!({})))?;
    following.end()?.fails("error: object has been deleted\n")?;
    rollout(scene, &["status", "python", "--timeout=1m"])?.ends_with(ROLLED_OUT)?;
    wait_until_at_rest(scene, 60)
}

pub fn what_the_server_refuses_reads_as_from_kubectl(scene: &Scene) -> Result<(), String> {
    let missing = "Error from server (NotFound): pools.warmpool.dev \"python\" not found\n";
    for verb in ["status", "history", "undo", "pause", "resume", "restart"] {
        rollout(scene, &[verb, "python"])?.fails(missing)?;
    }
    let elsewhere = rollout(scene, &["pause", "python", "--context=elsewhere"])?;
    let has_line =
        elsewhere.code == Some(1) && elsewhere.err.starts_with("error: the kubeconfig cannot be used");
    wait::ensure(has_line, || format!("{elsewhere:?}"))
}
