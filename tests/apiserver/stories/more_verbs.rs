//! Checks `kubectl warmpool status`, `top`, `plan`, `exec`, `release` and `set image` from outside.

use super::{bound, says};
use crate::api::CLAIMS;
use crate::check::event::text;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{NEW_IMAGE, pool};
use crate::plugin::Call;
use crate::program::CommandOutput;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

fn call(scene: &Scene, arguments: &[&str]) -> Result<CommandOutput, String> {
    Call::of(scene, arguments).run()
}

/// What a call that succeeds prints. An operator is at work, so it has no hint that none is.
fn printed(scene: &Scene, arguments: &[&str]) -> Result<String, String> {
    let said = call(scene, arguments)?;
    let good = said.code == Some(0) && said.err.is_empty() && !said.out.contains("No operator");
    wait::ensure(good, || format!("{arguments:?}: {said:?}"))?;
    Ok(said.out)
}

fn contains(printed: &str, part: &str) -> Result<(), String> {
    wait::ensure(printed.contains(part), || {
        format!("{part:?} is missing in\n{printed}")
    })
}

pub fn a_pool_is_shown_on_one_screen_and_its_claims_are_counted(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 60)?;
    let screen = printed(scene, &["status", "python"])?;
    for part in [
        &format!("Pool {}/python: Available True", scene.namespace),
        "(latest)   2           0         1",
        "Claims: 1 bound.",
        "Pool python is full: 2 available, 2 wanted, 1 held by claims.",
        "There is nothing to do now.",
    ] {
        contains(&screen, part)?;
    }
    let top = printed(scene, &["top"])?;
    let row: Vec<&str> = top
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    wait::ensure(row[..4] == ["python", "2/2", "1", "100%"], || top.clone())?;
    let plan = printed(scene, &["plan", "-o", "json"])?;
    let plan: Value = serde_json::from_str(&plan).map_err(|e| e.to_string())?;
    let pools = plan["pools"].as_array().map_or(0, Vec::len);
    wait::ensure(pools == 1 && plan["pools"][0]["name"] == "python", || {
        plan.to_string()
    })?;
    call(scene, &["status", "nowhere"])?
        .fails("Error from server (NotFound): pools.warmpool.dev \"nowhere\" not found\n")
}

pub fn a_claim_is_released_and_an_image_rolled_out(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 1, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    call(scene, &["release", "run"])?.is("sandboxclaim.warmpool.dev \"run\" deleted\n")?;
    let left = scene.lab.api.get(CLAIMS, &scene.namespace, "run")?;
    wait::ensure(left.is_none(), || format!("{left:?}"))?;
    call(scene, &["release", "run"])?
        .fails("Error from server (NotFound): sandboxclaims.warmpool.dev \"run\" not found\n")?;
    wait_until_at_rest(scene, 60)?;
    let change = format!("main={NEW_IMAGE}");
    let tried = ["set", "image", "python", &change, "--dry-run=server"];
    call(scene, &tried)?.is("pool.warmpool.dev/python image updated (server dry run)\n")?;
    let image = || {
        Ok::<_, String>(text(&scene.pool("python")?, "/spec/template/spec/containers/0/image").to_string())
    };
    wait::ensure(image()? != NEW_IMAGE, || "a dry run has written".to_string())?;
    call(scene, &["set", "image", "python", &change])?.is("pool.warmpool.dev/python image updated\n")?;
    wait::ensure(image()? == NEW_IMAGE, || "the image is not written".to_string())?;
    wait_until_at_rest(scene, 60)?;
    call(scene, &["set", "image", "python", &change])?.is("pool.warmpool.dev/python image unchanged\n")
}

pub fn labels_select_and_each_format_is_printed(scene: &Scene) -> Result<(), String> {
    let labelled = |name: &str, lang: &str| {
        let mut pool = pool(name, 2, &json!({}));
        pool["metadata"]["labels"] = json!({"lang": lang});
        pool
    };
    scene.create_pool(&labelled("python", "python"))?;
    scene.create_pool(&labelled("pypy", "python"))?;
    scene.create_pool(&labelled("node", "js"))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("batch", "python", &json!({"replicas": 2, "onEmpty": "Wait"}))?;
    bound(scene, "batch")?;
    wait_until_at_rest(scene, 60)?;
    let python = ["-l", "lang=python"];
    let with = |verb: &[&str], more: &[&str]| printed(scene, &[verb, &python, more].concat());
    let names = "pool.warmpool.dev/pypy\npool.warmpool.dev/python\n";
    for verb in ["status", "top"] {
        let said = with(&[verb], &["-o", "name"])?;
        wait::ensure(said == names, || format!("{verb}: {said}"))?;
    }
    for verb in ["status", "top", "plan"] {
        let document: Value =
            serde_json::from_str(&with(&[verb], &["-o", "json"])?).map_err(|e| e.to_string())?;
        let pools = document["pools"].as_array().cloned().unwrap_or_default();
        let pools: Vec<_> = pools.iter().map(|pool| pool["name"].clone()).collect();
        wait::ensure(pools == ["pypy", "python"], || format!("{verb}: {pools:?}"))?;
        contains(&with(&[verb], &["-o", "yaml"])?, "pools:\n- ")?;
    }
    let sandboxes = scene.claim("batch")?["status"]["sandboxes"].clone();
    let all = format!(
        "{},{}",
        text(&sandboxes[0], "/name"),
        text(&sandboxes[1], "/name")
    );
    contains(&with(&["status"], &["-o", "wide"])?, &all)?;
    contains(&with(&["top"], &["-o", "wide"])?, "TOTAL")?;
    wait::ensure(with(&["plan"], &["-o", "name"])?.is_empty(), || {
        "there is nothing to do".into()
    })?;
    call(scene, &["top", "-l", "lang=ruby"])?
        .says_nothing_but(&format!("No pools found in {} namespace.\n", scene.namespace))?;
    let image = format!("main={NEW_IMAGE}");
    let changed = with(&["set", "image"], &[&image, "-o", "name"])?;
    wait::ensure(changed == names, || changed.clone())?;
    wait_until_at_rest(scene, 60)?;
    let followed = with(&["rollout", "status"], &["--timeout=60s"])?;
    wait::ensure(followed.matches("successfully rolled out").count() == 2, || {
        followed.clone()
    })?;
    let paused = with(&["rollout", "pause"], &[])?;
    wait::ensure(paused == names.replace('\n', " paused\n"), || paused.clone())?;
    // One of several that fails does not keep the verb from the others.
    printed(scene, &["rollout", "resume", "pypy"])?;
    let resumed = call(scene, &["rollout", "resume", "-l", "lang=python"])?;
    let rest = resumed.code == Some(1)
        && resumed.out == "pool.warmpool.dev/python resumed\n"
        && resumed.err == "error: pools.warmpool.dev \"pypy\" is not paused\n";
    wait::ensure(rest, || format!("{resumed:?}"))?;
    scene.kubectl(&["label", "sbc", "batch", "team=red"], None)?;
    call(scene, &["release", "-l", "team=red", "-o", "name"])?.is("sandboxclaim.warmpool.dev/batch\n")?;
    wait_until_at_rest(scene, 60)
}

pub fn every_missing_right_is_named(scene: &Scene) -> Result<(), String> {
    let said = call(scene, &["why", "run", "--as=nobody"])?;
    let lines: Vec<&str> = said.err.lines().collect();
    let named = |resource: &str| {
        let mut lines = lines.iter();
        lines.any(|line| {
            line.starts_with("Error from server (Forbidden): ")
                && line.contains(&format!("list resource \"{resource}\""))
        })
    };
    let all = [
        "pools",
        "sandboxclaims",
        "controllerrevisions",
        "podtemplates",
        "pods",
    ];
    wait::ensure(
        said.code == Some(1) && all.into_iter().all(named) && lines.len() == all.len(),
        || format!("{said:?}"),
    )
}

/// A terminal of 60 columns, which `script` of util-linux gives to the call.
pub fn sentences_fit_a_terminal_of_sixty_columns_and_stay_whole_in_a_pipe(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &json!({})))?;
    scene.create_claim("run", "python", &json!({"onEmpty": "Wait"}))?;
    says(scene, "run", "Bound", "NoneAvailable")?;
    let whole = printed(scene, &["why", "run"])?;
    wait::ensure(whole.lines().any(|line| line.chars().count() > 60), || {
        whole.clone()
    })?;
    let narrow = Call::of(scene, &["why", "run"]).in_terminal(60)?;
    let fits = narrow.code == Some(0)
        && narrow
            .out
            .lines()
            .all(|line| line.trim_end().chars().count() <= 60);
    wait::ensure(fits, || format!("{narrow:?}"))?;
    let words = |text: &str| {
        text.split_whitespace()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    // The time that a claim has waited goes on between the calls.
    let (narrow, whole) = (words(&narrow.out), words(&whole));
    wait::ensure(narrow.len() == whole.len(), || {
        format!("{narrow:?} is not {whole:?}")
    })?;
    scene.delete_claim("run")?;
    wait_until_at_rest(scene, 60)
}

pub fn a_namespace_that_is_not_there_has_no_pools(scene: &Scene) -> Result<(), String> {
    let said = call(scene, &["top", "-n", "nowhere"])?;
    said.says_nothing_but("No pools found in nowhere namespace.\n")?;
    let said = call(scene, &["claim", "python", "-n", "nowhere"])?;
    said.fails(
        "error: pool \"python\" not found in namespace \"nowhere\", so nothing is claimed; 'kubectl get pools -n nowhere' \
         lists those that are there\n",
    )?;
    call(scene, &["rollout", "pause", "python", "-n", "nowhere"])?
        .fails("Error from server (NotFound): pools.warmpool.dev \"python\" not found\n")
}
