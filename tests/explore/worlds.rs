//! The larger worlds that are walked through at random, each drawn by its number.

use crate::scene::{Left, Scene, TEMPLATE};
use crate::scenes::{image, pre_delete};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// The world number `seed`.
pub fn scene(seed: u64) -> &'static Scene {
    let mut random = StdRng::seed_from_u64(seed);
    let replicas = random.random_range(2..=6);
    Scene::new("a walk", replicas).with(|scene| {
        let unavailable = random.random_range(0..=2usize);
        let surge = random.random_range(0..=2usize);
        let strategy = [
            "RollingUpdate",
            "RollingUpdate",
            "RollingUpdate",
            "OnReplenish",
            "Recreate",
        ];
        let strategy = strategy.choose(&mut random).unwrap();
        let update = json!({"maxUnavailable": unavailable, "maxSurge": surge, "type": strategy});
        scene.pool(json!({"updateStrategy": update}));
        for (chance, field) in [
            (
                0.3,
                json!({"capacity": {"maxTotal": random.random_range(replicas + 1..=replicas + 4)}}),
            ),
            (
                0.2,
                json!({"capacity": {"maxWarm": replicas + random.random_range(0..=2)}}),
            ),
            (
                0.2,
                json!({"capacity": {"minTotal": random.random_range(0..=replicas + 1)}}),
            ),
            (
                0.2,
                json!({"updateStrategy": {"partition": random.random_range(0..=2)}}),
            ),
            (
                0.2,
                json!({"scaleStrategy": {"maxUnavailable": random.random_range(1..=2)}}),
            ),
            (0.2, json!({"minReadySeconds": random.random_range(1..=20)})),
            (0.2, json!({"revisionHistoryLimit": random.random_range(0..=1)})),
        ] {
            if random.random_bool(chance) {
                scene.pool(field);
            }
        }
        // The handlers are labels that the template gives and that a user changes later.
        if random.random_bool(0.2) {
            scene.pool(json!({
                "lifecycle": {"preNormal": {"labelsHandler": {"admitted": "yes"}}},
                "template": {"metadata": {"labels": {"admitted": "no"}}},
            }));
        }
        if random.random_bool(0.2) {
            scene.pool(pre_delete());
        }
        if random.random_bool(0.3) {
            let replicas = random.random_range(0..=3);
            scene.another_pool(json!({"replicas": replicas, "capacity": null}));
        }
        let pools = scene.pools.len();
        let claims = random.random_range(1..=8);
        scene.operators = random.random_range(1..=2);
        let claims: Vec<_> = (0..claims)
            .map(|_| claim(&mut random, scene.operators, pools))
            .collect();
        scene.claims(claims);
        let images = ["one", "two", "three"];
        let edits = random.random_range(0..=3);
        let pool = |random: &mut StdRng| scene.pools.choose(random).map_or("", |(name, _)| *name);
        let mut edits: Vec<_> = (0..edits)
            .map(|_| (pool(&mut random), edit(&mut random, &images)))
            .collect();
        if pools > 1 && random.random_bool(0.5) {
            edits.push(("po", Value::Null));
            edits.extend(random.random_bool(0.5).then_some(("po", Value::Bool(true))));
        }
        scene.left.edits = edits.leak();
        let mut up_to = |most: u8| random.random_range(0..=most);
        scene.left = Left {
            crashes: up_to(2),
            losses: up_to(3),
            relists: up_to(2),
            stalls: up_to(1),
            passes: up_to(3),
            unclaims: up_to(3),
            evictions: up_to(2),
            deaths: up_to(2),
            unready: up_to(2),
            removals: up_to(1),
            prunes: up_to(1),
            quotas: up_to(1),
            ..scene.left.clone()
        };
        scene.late = random.random_bool(0.5);
        scene.hasty = random.random_bool(0.5);
        scene.nodeless = random.random_bool(0.3);
        if random.random_bool(0.5) {
            scene.left.hangs = random.random_range(1..=3);
            for (_, spec) in &mut scene.pools {
                spec["warmUpDeadlineSeconds"] = json!(60);
            }
        }
        scene.lingering = random.random_bool(0.5);
        scene.apart = random.random_bool(0.2);
        scene.slow_reads = random.random_bool(0.5);
        if scene.operators == 1 && random.random_bool(0.5) {
            strict(&mut random, scene);
        }
        scene.left.rejections = random.random_range(0..=2);
        if random.random_bool(0.3) {
            move_template(scene);
        }
        if scene.operators > 1 && random.random_bool(0.5) {
            replace_one_loss(scene);
        }
        if random.random_bool(0.4) {
            drain(&mut random, scene);
        }
        if random.random_bool(0.3) {
            sizes_itself(&mut random, scene);
        }
    })
}

/// The first pool chooses its size. Users change its limits and its hit rate, and in the end some take `autoscaling` away. A
/// schedule counts in the first minute of the world.
fn sizes_itself(random: &mut StdRng, scene: &mut Scene) {
    let replicas = scene.pools[0].1["replicas"].as_u64().unwrap();
    let autoscaling = |random: &mut StdRng| {
        let most = replicas + random.random_range(1..=3);
        let target = ["50%", "90%", "99%"].choose(random).unwrap();
        let window = [30, 60].choose(random).unwrap();
        json!({"autoscaling": {
            "maxReplicas": most, "targetHitRate": target, "stabilizationWindowSeconds": window,
        }})
    };
    let field = autoscaling(random);
    scene.pool(field);
    if random.random_bool(0.4) {
        scene.pool(json!({"autoscaling": {"schedules": [{
            "name": "new-year", "schedule": "0 0 1 1 *", "durationSeconds": 60, "minReplicas": replicas + 1,
        }]}}));
    }
    let mut edits = scene.left.edits.to_vec();
    if random.random_bool(0.5) {
        let at = random.random_range(0..=edits.len());
        edits.insert(at, ("pl", autoscaling(random)));
    }
    if random.random_bool(0.2) {
        edits.push(("pl", json!({"autoscaling": null})));
    }
    scene.left.edits = edits.leak();
}

/// Nodes are cordoned, uncordoned and deleted. What is on a deleted node goes by itself, so not in a strict world.
fn drain(random: &mut StdRng, scene: &mut Scene) {
    scene.on_nodes(&["node-a", "node-b", "node-c"]);
    scene.left.cordons = random.random_range(1..=3);
    scene.left.uncordons = random.random_range(0..=2);
    if !scene.strict {
        scene.left.lost_nodes = random.random_range(0..=1);
    }
}

/// The template of the first pool, and the edits of it, move to the PodTemplate.
fn move_template(scene: &mut Scene) {
    scene.move_template();
    let mut edits = scene.left.edits.to_vec();
    for (name, edit) in edits.iter_mut().filter(|(name, _)| *name == "pl") {
        if let Some(template) = edit.get("template").cloned() {
            (*name, *edit) = (TEMPLATE, template);
        }
    }
    scene.left.edits = edits.leak();
}

/// Lets two leaders replace the one sandbox that the claims lose. What they may do to a claim that loses another meanwhile is
/// in docs/guarantees.md.
fn replace_one_loss(scene: &mut Scene) {
    let mut claims = scene.left.claims.to_vec();
    for (_, spec) in &mut claims {
        spec["onSandboxLost"] = json!("Replace");
    }
    scene.left = Left {
        claims: claims.leak(),
        removals: 1,
        deaths: 0,
        ..scene.left.clone()
    };
}

/// Makes of a world one in which nothing but its operator and its claims takes sandboxes away.
fn strict(random: &mut StdRng, scene: &mut Scene) {
    scene.strict = true;
    scene.late = false;
    let spec = &mut scene.pools[0].1;
    let bounded = spec.pointer("/capacity/maxTotal").is_some();
    let rolls = spec["updateStrategy"]["type"] != "Recreate";
    for (_, spec) in &mut scene.pools {
        // Time alone would make a sandbox available, or have one that never comes up tried again and again.
        spec.as_object_mut().unwrap().remove("minReadySeconds");
        spec["warmUpDeadlineSeconds"] = json!(i32::MAX);
    }
    let mut edits = scene.left.edits.to_vec();
    edits.retain(|(_, edit)| edit.get("replicas").is_none());
    if rolls && !bounded && random.random_bool(0.3) {
        let at = random.random_range(0..=edits.len());
        edits.insert(at, ("pl", image("broken")));
    }
    scene.left = Left {
        edits: edits.leak(),
        hangs: 0,
        deaths: 0,
        unready: 0,
        removals: 0,
        prunes: 0,
        ..scene.left.clone()
    };
    if random.random_bool(0.2) {
        scene.left.claims = &[];
    }
    // What there is room for beside claims grows only when one ends.
    if bounded {
        scene.left.unclaims = 0;
        let mut claims = scene.left.claims.to_vec();
        for (_, spec) in &mut claims {
            let spec = spec.as_object_mut().unwrap();
            spec.remove("lifetimeSeconds");
            spec.remove("shutdownTime");
        }
        scene.left.claims = claims.leak();
    }
}

fn claim(random: &mut StdRng, operators: usize, pools: usize) -> Value {
    let replicas = [1, 1, 1, 2, 3].choose(random).copied().unwrap();
    let policy = ["PreferLatest", "PreferLatest", "Latest", "Any"]
        .choose(random)
        .unwrap();
    let priority = random.random_range(0..=2);
    // Two leaders replace no more than one sandbox: see `replace_one_loss`.
    let replaces = operators == 1 && random.random_bool(0.3);
    let lost = if replaces { "Replace" } else { "Fail" };
    // No other claim waits for a claim for more sandboxes than the pool keeps, which the laws do not know.
    let on_empty = if replicas == 1 {
        ["Create", "Create", "Create", "Wait", "Fail"]
    } else {
        ["Create"; 5]
    };
    let on_empty = on_empty.choose(random).unwrap();
    let release = ["Delete", "Retain"].choose(random).unwrap();
    let mut claim = json!({
        "replicas": replicas, "priority": priority, "revisionPolicy": policy, "onSandboxLost": lost,
        "onEmpty": on_empty, "releasePolicy": release,
    });
    if pools > 1 && random.random_bool(0.6) {
        claim["poolRef"] = json!({"name": "po"});
        if random.random_bool(0.6) {
            claim["poolRef"] = Value::Null;
            claim["poolSelector"] = json!({"matchLabels": {"lang": "any"}});
        }
    }
    if random.random_bool(0.2) {
        claim["lifetimeSeconds"] = json!(60);
    } else if random.random_bool(0.1) {
        claim["shutdownTime"] = json!("2026-01-01T00:01:00Z");
    }
    if random.random_bool(0.2) {
        claim["ttlSecondsAfterFinished"] = json!(30);
    }
    if random.random_bool(0.2) {
        claim["waitTimeoutSeconds"] = json!(30);
    }
    claim
}

/// What a user does to the spec of a pool.
fn edit(random: &mut StdRng, images: &[&str]) -> Value {
    match random.random_range(0..=5) {
        0..=2 => return json!({"replicas": random.random_range(0..=6)}),
        3 => return json!({"updateStrategy": {"paused": random.random_bool(0.6)}}),
        _ => {}
    }
    image(images.choose(random).unwrap())
}
