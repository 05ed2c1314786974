//! Checks `kubectl warmpool claim` and `kubectl warmpool why` from outside.

use super::held::let_go_until_at_rest;
use super::{bound, in_phase, pool_says, says};
use crate::api::CLAIMS;
use crate::check::event::text;
use crate::cluster_state::{label, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, pool, sim};
use crate::plugin::Call;
use crate::program::CommandOutput;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Runs `kubectl warmpool ...` to its end.
fn call(scene: &Scene, arguments: &[&str]) -> Result<CommandOutput, String> {
    Call::of(scene, arguments).run()
}

fn title(claim: &str) -> String {
    format!("sandboxclaim.warmpool.dev/{claim}")
}

/// The line with which `claim` reports the sandbox.
fn bound_line(claim: &Value) -> String {
    let of = |pointer| text(claim, pointer);
    format!(
        "{} bound to sandbox {} ({}) in {}\n",
        title(of("/metadata/name")),
        of("/status/sandboxes/0/name"),
        of("/status/sandboxes/0/ip"),
        of("/status/wait")
    )
}

fn is_gone(scene: &Scene, claim: &str) -> Result<(), String> {
    let left = scene.lab.api.get(CLAIMS, &scene.namespace, claim)?;
    left.map_or(Ok(()), |claim| Err(format!("it is there: {claim}")))
}

/// A kubectl that does what `script` says, where `note "$@"` notes how it was called: simulated nodes run no containers, so
/// there is nothing that the real one could execute a command in.
fn stub(scene: &Scene, script: &str) -> Result<(PathBuf, PathBuf), String> {
    let folder = scene.lab.cluster.dir.join(format!("stub-{}", scene.namespace));
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let (program, noted) = (folder.join("kubectl"), folder.join("called"));
    let script = format!(
        "#!/bin/sh\nnote() {{ printf '%s\\n' \"$@\" > '{}'; }}\n{script}\n",
        noted.display()
    );
    fs::write(&program, script).map_err(|e| e.to_string())?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())?;
    Ok((folder, noted))
}

pub fn a_claim_says_why_it_waits_and_which_sandbox_it_got(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &sim(&[("hold", "true")])))?;
    // A call that looks late may find its claim bound.
    let mut calls = 0;
    let (run, said) = wait::until("a call saw its claim wait", 60, || {
        calls += 1;
        let run = format!("run-{calls}");
        let name = format!("--name={run}");
        let waiting = Call::of(scene, &["claim", "python", &name, "--timeout=1m"]).start()?;
        says(scene, &run, "Bound", "NoneAvailable")?;
        let_go_until_at_rest(scene)?;
        let said = waiting.end()?;
        wait::ensure(said.err.lines().count() > 1, || format!("{said:?}"))?;
        Ok((run, said))
    })?;
    let claim = scene.claim(&run)?;
    let right = said.code == Some(0) && said.out == bound_line(&claim);
    wait::ensure(right, || format!("{said:?} about {claim}"))?;
    let lines: Vec<&str> = said.err.lines().collect();
    let [created, why] = lines[..] else {
        return Err(format!("{said:?}"));
    };
    let start = format!(
        "{}: no sandbox is available yet; the claim was first in line at ",
        title(&run)
    );
    let matches = created == format!("{} created", title(&run)) && why.starts_with(&start);
    wait::ensure(matches, || format!("{said:?}"))?;
    wait_until_at_rest(scene, 60)
}

pub fn a_claim_without_a_name_gets_one_and_can_be_printed(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let said = call(scene, &["claim", "pool/python", "-o", "json"])?;
    let claim: Value = serde_json::from_str(&said.out).map_err(|e| format!("{e} in {said:?}"))?;
    let name = text(&claim, "/metadata/name");
    let right = name.starts_with("python-")
        && name.len() == "python-".len() + 5
        && text(&claim, "/status/phase") == "Bound"
        && said.err == format!("{} created\n", title(name));
    wait::ensure(right, || format!("{said:?}"))?;
    let said = call(scene, &["claim", "python", "--wait=false", "--name=later"])?;
    said.is(&format!("{} created\n", title("later")))?;
    bound(scene, "later")?;
    let again = call(scene, &["claim", "python", "--name=later"])?;
    let words = "Error from server (AlreadyExists): sandboxclaims.warmpool.dev \"later\" already exists\n";
    again.fails(words)?;
    wait_until_at_rest(scene, 60)
}

pub fn a_claim_that_is_not_served_says_so_and_stays_unless_it_is_to_be_removed(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &sim(&[("hold", "true")])))?;
    // The operator says why a claim waits once it has waited a while, which a call may not live to see.
    let mut calls = 0;
    let (left, said) = wait::until("a call was told why its claim waits", 20, || {
        calls += 1;
        let left = format!("left-{calls}");
        let name = format!("--name={left}");
        let said = call(scene, &["claim", "python", &name, "--timeout=2s"])?;
        let is_told = !said.err.contains(", and its status is empty");
        wait::ensure(is_told, || format!("{said:?}"))?;
        Ok((left, said))
    })?;
    let error = format!(
        "error: {} still waits after 2s: no sandbox is available yet; ",
        title(&left)
    );
    let advice = format!(
        "; 'kubectl delete sandboxclaim {left} -n {}' deletes it",
        scene.namespace
    );
    let last = said.err.lines().last().unwrap_or_default();
    let matches =
        said.code == Some(1) && said.out.is_empty() && last.starts_with(&error) && last.ends_with(&advice);
    wait::ensure(matches, || format!("{said:?}"))?;
    in_phase(scene, &left, "Pending", 10)?;
    let said = call(scene, &["claim", "python", "--name=gone", "--timeout=1s", "--rm"])?;
    let deleted = said
        .err
        .contains("sandboxclaim.warmpool.dev \"gone\" deleted\nerror: ");
    wait::ensure(
        said.code == Some(1) && deleted && !said.err.contains("deletes it"),
        || format!("{said:?}"),
    )?;
    is_gone(scene, "gone")?;
    let waiting = Call::of(scene, &["claim", "python", "--name=failed", "--rm"]).start()?;
    says(scene, "failed", "Bound", "NoneAvailable")?;
    let sooner = json!({"spec": {"waitTimeoutSeconds": 1}});
    scene.lab.api.merge(CLAIMS, &scene.namespace, "failed", &sooner)?;
    let said = waiting.end()?;
    let error = format!(
        "error: {} is Failed (WaitTimeout: no sandbox became available within waitTimeoutSeconds)\n",
        title("failed")
    );
    wait::ensure(said.code == Some(1) && said.err.ends_with(&error), || {
        format!("{said:?}")
    })?;
    is_gone(scene, "failed")
}

pub fn a_claim_on_a_pool_that_is_not_there_is_not_made(scene: &Scene) -> Result<(), String> {
    let namespace = &scene.namespace;
    call(scene, &["claim", "pyhton"])?.fails(&format!(
        "error: pool \"pyhton\" not found in namespace {namespace:?}, so nothing is claimed; 'kubectl get pools -n \
         {namespace}' lists those that are there\n"
    ))?;
    let claims = scene.claims()?;
    wait::ensure(claims.is_empty(), || format!("{claims:?}"))
}

pub fn a_command_in_the_sandbox_decides_the_exit_code_and_the_claim_goes_after_it(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let (folder, noted) = stub(scene, "note \"$@\"; echo from the sandbox; exit 7")?;
    let arguments = [
        "claim",
        "python",
        "--name=run",
        "-it",
        "--rm",
        "--container=main",
        "--exec",
        "--",
        "sh",
        "-c",
        "a b",
    ];
    let said = Call::of(scene, &arguments).with_first_in_path(&folder).run()?;
    let right = said.code == Some(7)
        && said.out == "from the sandbox\n"
        && said
            .err
            .contains(&format!("{} bound to sandbox python-", title("run")))
        && said.err.ends_with("sandboxclaim.warmpool.dev \"run\" deleted\n");
    wait::ensure(right, || format!("{said:?}"))?;
    is_gone(scene, "run")?;
    let sandbox = said.err.split("bound to sandbox ").nth(1).unwrap_or_default();
    let sandbox = sandbox.split(' ').next().unwrap_or_default();
    let called = fs::read_to_string(noted).map_err(|e| e.to_string())?;
    let namespace = &scene.namespace;
    let expected = format!(
        "exec\n--namespace\n{namespace}\n--container\nmain\n--stdin\n--tty\n{sandbox}\n--\nsh\n-c\na b\n"
    );
    wait::ensure(called == expected, || {
        format!("{called:?} instead of {expected:?}")
    })?;
    wait_until_at_rest(scene, 60)
}

pub fn a_call_ended_by_a_signal_takes_its_claim_along(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("held", 0, &sim(&[("hold", "true")])))?;
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let waiting = Call::of(scene, &["claim", "held", "--name=waits", "--rm"]).start()?;
        says(scene, "waits", "Bound", "NoneAvailable")?;
        waiting.signal(signal)?;
        let said = waiting.end()?;
        wait::ensure(said.code == Some(code), || format!("{said:?} after SIG{signal}"))?;
        is_gone(scene, "waits")?;
    }
    scene.create_pool(&pool("python", 1, &json!({})))?;
    pool_says(scene, "python", "Available", "MinimumReplicasAvailable")?;
    let (folder, noted) = stub(scene, "trap 'exit 9' TERM; note \"$@\"; sleep 60 & wait; exit 0")?;
    let arguments = ["claim", "python", "--name=works", "--rm", "--exec", "--", "work"];
    let working = Call::of(scene, &arguments).with_first_in_path(&folder).start()?;
    wait::until("the command ran", 30, || {
        let called = fs::read_to_string(&noted).map_err(|e| e.to_string())?;
        wait::ensure(called.ends_with("work\n"), || called)
    })?;
    working.signal("TERM")?;
    let said = working.end()?;
    wait::ensure(said.code == Some(9), || format!("{said:?}"))?;
    is_gone(scene, "works")
}

/// `kubectl warmpool why` says all of these lines.
fn why_says(scene: &Scene, target: &str, lines: &[&str]) -> Result<(), String> {
    let said = call(scene, &["why", target])?;
    let matches = |line: &&str| said.out.lines().any(|said| said == *line);
    let right = said.code == Some(0) && said.err.is_empty() && lines.iter().all(matches);
    wait::ensure(right, || format!("{target}: expected {lines:#?} in {said:?}"))
}

pub fn why_tells_what_a_claim_waits_for_and_what_it_got(scene: &Scene) -> Result<(), String> {
    let spec = json!({"capacity": {"maxTotal": 1}});
    scene.create_pool(&pool("python", 1, &spec))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("first", "python", &json!({}))?;
    let first = bound(scene, "first")?;
    scene.create_claim("second", "python", &json!({}))?;
    says(scene, "second", "Bound", "Exhausted")?;
    let sandbox = text(&first, "/status/sandboxes/0/name");
    let said = call(scene, &["why", "second"])?;
    let start = "Claim second has waited ";
    let why = " for a sandbox of pool python: no sandbox is available and the pool's capacity.maxTotal forbids more; the claim is first in line";
    let matches = said.out.starts_with(start) && said.out.contains(why);
    wait::ensure(matches, || format!("{said:?}"))?;
    why_says(
        scene,
        "second",
        &["capacity.maxTotal is 1, claimed and terminating ones included, and allows 0 more."],
    )?;
    let said = call(scene, &["why", "claim/first"])?;
    let start = format!(
        "Claim first is bound to sandbox {sandbox} ({}) of pool python since ",
        text(&first, "/status/sandboxes/0/ip")
    );
    wait::ensure(said.out.starts_with(&start), || format!("{said:?}"))?;
    why_says(
        scene,
        sandbox,
        &[
            &format!("Sandbox {sandbox} of pool python belongs to claim first."),
            "It is Ready. It goes only with its claim, or when that expires.",
        ],
    )?;
    scene.delete_claim("first")?;
    bound(scene, "second")?;
    scene.delete_claim("second")?;
    wait_until_at_rest(scene, 60)
}

pub fn why_tells_what_holds_a_paused_pool(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({"updateStrategy": {"paused": true}})))?;
    wait_until_at_rest(scene, 60)?;
    let full = "Pool python is full: 2 available, 2 wanted.";
    why_says(scene, "python", &[full, "There is nothing to do now."])?;
    scene.roll_to("python", NEW_IMAGE)?;
    let message = pool_says(scene, "python", "Progressing", "Paused")?;
    why_says(
        scene,
        "pool/python",
        &[
            full,
            &format!("Rollout: {message}."),
            &format!(
                "'kubectl warmpool rollout resume python -n {}' lets it go on.",
                scene.namespace
            ),
            "There is nothing to do now.",
        ],
    )?;
    scene.patch_pool("python", &json!({"spec": {"updateStrategy": {"paused": false}}}))?;
    wait_until_at_rest(scene, 60)
}

pub fn why_tells_what_a_gated_sandbox_lacks(scene: &Scene) -> Result<(), String> {
    let hook = json!({"labelsHandler": {"example.com/checked": "yes"}});
    scene.create_pool(&pool("python", 1, &json!({"lifecycle": {"preNormal": hook}})))?;
    let pod = wait::until("the sandbox was ready", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["ready"] == 1, || status.to_string())?;
        let pods = scene.pods()?;
        let warm = pods.iter().find(|pod| label(pod, "state") == "warm");
        let name = warm.map(|pod| text(pod, "/metadata/name").to_string());
        name.ok_or_else(|| format!("{pods:?}"))
    })?;
    let lacks = "It is not available: these preNormal handlers are missing: label example.com/checked=yes.";
    why_says(scene, &pod, &[lacks, "The operator would not touch it now."])?;
    why_says(
        scene,
        "python",
        &["Pool python is not full: 0 available, 1 wanted, 1 not available yet."],
    )?;
    scene.kubectl(&["label", "pod", &pod, "example.com/checked=yes"], None)?;
    why_says(
        scene,
        &format!("pod/{pod}"),
        &["It is the 1st of 1 to be claimed."],
    )?;
    wait_until_at_rest(scene, 60)
}

pub fn why_of_what_is_not_there_reads_as_from_kubectl(scene: &Scene) -> Result<(), String> {
    let line = |kind: &str| format!("Error from server (NotFound): {kind} \"nobody\" not found\n");
    let (claims, pools, pods) = ("sandboxclaims.warmpool.dev", "pools.warmpool.dev", "pods");
    for (target, kinds) in [
        ("nobody", &[claims, pools, pods][..]),
        ("claim/nobody", &[claims]),
        ("pool/nobody", &[pools]),
        ("pod/nobody", &[pods]),
    ] {
        let lines: String = kinds.iter().map(|kind| line(kind)).collect();
        call(scene, &["why", target])?.fails(&lines)?;
        // The very words of kubectl.
        if let [kind] = kinds {
            let words = scene
                .kubectl(&["get", kind, "nobody"], None)
                .err()
                .unwrap_or_default();
            wait::ensure(words.contains(lines.trim_end()), || words)?;
        }
    }
    scene.kubectl(&["run", "stranger", "--image=sandbox:1"], None)?;
    let words = "Pod stranger belongs to no pool: it lacks the label warmpool.dev/pool.\n";
    call(scene, &["why", "stranger"])?.is(words)?;
    scene.kubectl(&["delete", "pod", "stranger"], None).map(drop)
}
