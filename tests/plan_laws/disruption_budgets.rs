//! Checks which PodDisruptionBudgets a pool keeps.

use crate::drains::on_two_nodes;
use crate::world::{POOL_UID, World, lines};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::api::labels;
use warmpool::cache::pod_disruption_budget_snapshot::{Access, BudgetSnapshot};
use warmpool::model::failure::{Class, Failure};
use warmpool::model::pod_disruption_budget::{BudgetProgress, BudgetStep, DisruptionBudget};
use warmpool::model::retry::Tries;
use warmpool::model::sandbox::Owner;
use warmpool::model::stored::StoredDisruptionBudget;
use warmpool::planner::PlanPhase;

/// A budget as the API server stores it. Without `pool` it is a user's.
pub fn budget(name: &str, pool: Option<&str>, spec: &Value) -> Arc<DisruptionBudget> {
    let owner = pool.map(|uid| {
        json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python", "uid": uid, "controller": true,
        })
    });
    let owners: Vec<_> = owner.into_iter().collect();
    let metadata = json!({"namespace": "default", "name": name, "uid": name, "ownerReferences": owners});
    let stored: StoredDisruptionBudget =
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    Arc::new(DisruptionBudget::read(&stored))
}

/// The operator has listed the budgets, and there are these.
pub fn listed(budgets: Vec<Arc<DisruptionBudget>>) -> BudgetSnapshot {
    BudgetSnapshot {
        access: Access::Listed,
        budgets,
        ..BudgetSnapshot::default()
    }
}

/// The next write as a short line.
fn line(step: &BudgetStep) -> String {
    let min = |spec: &Value| spec["minAvailable"].to_string();
    match step {
        BudgetStep::Create(name, spec) => format!("create {name} {}", min(&json!(spec))),
        BudgetStep::Change(budget, spec) => format!("change {} {}", budget.key.name, min(&json!(spec))),
        BudgetStep::Delete(budget) => format!("delete {}", budget.key.name),
    }
}

/// Carries out what is planned until nothing is. Returns the writes.
fn converge(world: &mut World) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(step) = world.plan().budget_step {
        lines.push(line(&step));
        assert!(lines.len() < 10, "I8: the budgets never come to rest: {lines:?}");
        let budgets = &mut world.budgets.budgets;
        budgets.retain(|budget| budget.key.name != step.name());
        match &step {
            BudgetStep::Create(name, spec) => budgets.push(budget(name, Some(POOL_UID), &json!(spec))),
            BudgetStep::Change(old, spec) => {
                budgets.push(budget(&old.key.name, Some(POOL_UID), &json!(spec)));
            }
            BudgetStep::Delete(_) => {}
        }
    }
    lines
}

/// A full pool whose budgets are listed.
fn full(replicas: usize, fields: Value) -> World {
    let mut world = World::full(replicas, fields);
    world.budgets = listed(Vec::new());
    world
}

/// The message of the condition `Available`.
fn available(world: &World) -> String {
    let conditions = world.plan().status.conditions;
    let available = conditions.iter().find(|c| c.type_ == "Available");
    available.unwrap().message.clone()
}

/// A sandbox of the world becomes a claim's.
fn claim_one(world: &mut World, name: &str, allows: bool) {
    let revision = world.update();
    world.sandbox(name, &revision, |sandbox| {
        sandbox.state = labels::CLAIMED.into();
        sandbox.allows_disruption = allows;
        sandbox.owner = Owner::Claim {
            name: name.into(),
            uid: format!("{name}-uid").into(),
        };
    });
}

#[test]
fn the_budget_over_unclaimed_sandboxes_asks_for_what_a_rollout_leaves_available() {
    let rows = [
        (10, json!({"updateStrategy": {"maxUnavailable": 3}}), Some(7)),
        (10, json!({"updateStrategy": {"maxUnavailable": "25%"}}), Some(8)),
        (1, json!({}), Some(1)),
        (1, json!({"capacity": {"maxTotal": 1}}), None),
        (4, json!({"capacity": {"maxTotal": 2}}), Some(1)),
        (10, json!({"updateStrategy": {"maxUnavailable": "100%"}}), None),
        (10, json!({"disruption": {"podDisruptionBudget": false}}), None),
        (0, json!({}), None),
    ];
    for (replicas, fields, min) in rows {
        let mut world = full(replicas, fields.clone());
        let mut expected: Vec<_> = min
            .iter()
            .map(|min| format!("create python-unclaimed {min}"))
            .collect();
        expected.push(format!("create python-claimed {}", i32::MAX));
        assert_eq!(converge(&mut world), expected, "{replicas} {fields}");
    }
}

#[test]
fn budgets_cover_disjoint_sandboxes_and_shield_what_is_not_ready_only_for_tenants() {
    let mut world = full(4, json!({}));
    converge(&mut world);
    claim_one(&mut world, "blocks", false);
    claim_one(&mut world, "allows", true);
    for sandbox in world.sandboxes.values() {
        let labels = sandbox.all_labels();
        let covering: Vec<_> = world
            .budgets
            .budgets
            .iter()
            .filter(|budget| budget.covers(&labels))
            .map(|budget| budget.key.name.as_str())
            .collect();
        let expected: &[&str] = match sandbox.key.name.as_str() {
            "blocks" => &["python-claimed"],
            "allows" => &[],
            _ => &["python-unclaimed"],
        };
        assert_eq!(covering, expected, "I2: {} is covered by these", sandbox.key.name);
    }
    let spec = |name: &str| {
        let budget = world.budgets.budgets.iter().find(|b| b.key.name == name);
        json!(budget.unwrap().spec)
    };
    assert_eq!(
        spec("python-unclaimed"),
        json!({
            "minAvailable": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {"warmpool.dev/pool": "python", "warmpool.dev/state": "warm"}},
        })
    );
    assert_eq!(
        spec("python-claimed"),
        json!({
            "minAvailable": i32::MAX, "unhealthyPodEvictionPolicy": "IfHealthyBudget",
            "selector": {
                "matchLabels": {"warmpool.dev/pool": "python", "warmpool.dev/state": "claimed"},
                "matchExpressions": [
                    {"key": "warmpool.dev/disruption", "operator": "NotIn", "values": ["Allow"]},
                ],
            },
        })
    );
}

#[test]
fn a_budget_follows_the_size_of_the_pool_and_is_otherwise_left_alone() {
    let mut world = full(10, json!({"updateStrategy": {"maxUnavailable": 2}}));
    converge(&mut world);
    claim_one(&mut world, "run", false);
    world.claim("waits", json!({}));
    assert_eq!(converge(&mut world), Vec::<String>::new());
    world.set(json!({"replicas": 5}));
    assert_eq!(converge(&mut world), ["change python-unclaimed 3"]);
    world.set(json!({"replicas": 0}));
    assert_eq!(converge(&mut world), ["delete python-unclaimed"]);
    world.set(json!({"replicas": 5, "disruption": {"podDisruptionBudget": false}}));
    assert_eq!(converge(&mut world), Vec::<String>::new());
}

#[test]
fn what_a_user_changed_in_a_budget_is_made_good() {
    let mut world = full(4, json!({}));
    converge(&mut world);
    let kept = world.budgets.budgets.clone();
    let changes = [
        json!({"minAvailable": 1}),
        json!({"maxUnavailable": 4}),
        json!({"unhealthyPodEvictionPolicy": "IfHealthyBudget"}),
        json!({"selector": {"matchLabels": {"app": "other"}}}),
    ];
    for change in changes {
        let edited = kept.iter().map(|kept| {
            let mut spec = json!(kept.spec);
            spec.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            budget(&kept.key.name, Some(POOL_UID), &spec)
        });
        world.budgets.budgets = edited.collect();
        assert!(!converge(&mut world).is_empty(), "{change}");
        let mut mended = world.budgets.budgets.clone();
        mended.sort_by_key(|budget| std::cmp::Reverse(budget.key.name.clone()));
        assert_eq!(mended, kept, "{change}");
    }
    world.budgets.budgets.clear();
    assert_eq!(converge(&mut world).len(), 2);
}

#[test]
fn a_users_budget_over_the_same_sandboxes_takes_the_place_of_ours() {
    let selectors = [
        (json!({"matchLabels": {"app": "python"}}), [true, true]),
        (json!({"matchLabels": {"app": "ruby"}}), [false, false]),
        (json!({"matchLabels": {"team": "blue"}}), [false, false]),
        (
            json!({"matchLabels": {"warmpool.dev/state": "warm", "app": "python"}}),
            [true, false],
        ),
        (json!({}), [true, true]),
        (Value::Null, [false, false]),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["ruby", "python"]}]}),
            [true, true],
        ),
        (
            json!({"matchExpressions": [{"key": "absent", "operator": "NotIn", "values": ["x"]}]}),
            [true, true],
        ),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}),
            [false, false],
        ),
        (
            json!({"matchExpressions": [{"key": "warmpool.dev/claim", "operator": "DoesNotExist"}]}),
            [true, false],
        ),
        (
            json!({"matchExpressions": [{"key": "warmpool.dev/claim", "operator": "Exists"}]}),
            [false, true],
        ),
        (
            json!({"matchExpressions": [{"key": "warmpool.dev/claim-uid", "operator": "In", "values": ["run-uid"]}]}),
            [false, false],
        ),
    ];
    for (selector, [over_unclaimed, over_claimed]) in selectors {
        let template = json!({"metadata": {"labels": {"app": "python"}}});
        let mut world = full(4, json!({"template": template}));
        for sandbox in world.sandboxes.values_mut() {
            sandbox.labels = [("app".to_string(), "python".to_string())].into();
        }
        claim_one(&mut world, "run", false);
        let run = world.sandboxes.get_mut("run").unwrap();
        run.labels = [("app", "python"), ("team", "blue")]
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .into();
        converge(&mut world);
        let mine = budget("mine", None, &json!({"minAvailable": 1, "selector": selector}));
        world.budgets.budgets.push(mine);
        let mut expected = Vec::new();
        let withdrawn = [
            (over_unclaimed, "python-unclaimed"),
            (over_claimed, "python-claimed"),
        ];
        expected.extend(
            withdrawn
                .iter()
                .filter(|(over, _)| *over)
                .map(|(_, name)| format!("delete {name}")),
        );
        assert_eq!(converge(&mut world), expected, "{selector}");
        let said = available(&world).contains("PodDisruptionBudget mine does");
        assert_eq!(said, over_unclaimed || over_claimed, "{selector}");
        // Once it is gone, the pool keeps its own again.
        world.budgets.budgets.retain(|budget| budget.key.name != "mine");
        assert_eq!(converge(&mut world).len(), expected.len(), "{selector}");
        assert!(!available(&world).contains("PodDisruptionBudget"), "{selector}");
    }
}

#[test]
fn a_users_budget_is_noticed_before_the_first_sandbox_exists() {
    let template = json!({"metadata": {"labels": {"app": "python"}}});
    let mut world = World::new(4, json!({"template": template}));
    let selector = json!({"matchLabels": {"app": "python", "warmpool.dev/state": "warm"}});
    let mine = budget("mine", None, &json!({"maxUnavailable": 1, "selector": selector}));
    world.budgets = listed(vec![mine]);
    let only = format!("create python-claimed {}", i32::MAX);
    assert_eq!(converge(&mut world), [only]);
}

#[test]
fn another_budget_of_our_name_is_left_alone_and_said() {
    for owner in [None, Some("another-pool")] {
        let mut world = full(4, json!({}));
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "other"}}});
        world.budgets = listed(vec![budget("python-unclaimed", owner, &spec)]);
        let only = format!("create python-claimed {}", i32::MAX);
        assert_eq!(converge(&mut world), [only]);
        let message = available(&world);
        assert!(
            message
                .ends_with("another PodDisruptionBudget has the name python-unclaimed; rename or delete it"),
            "{message}"
        );
    }
}

#[test]
fn where_every_claim_allows_evictions_no_budget_covers_claimed_sandboxes() {
    let allows = json!({"claimDefaults": {"disruption": "Allow"}});
    let mut world = full(4, allows);
    assert_eq!(converge(&mut world), ["create python-unclaimed 3"]);
    claim_one(&mut world, "allows", true);
    assert_eq!(converge(&mut world), Vec::<String>::new());
    // The budget comes before the sandbox is the claim's.
    world.claim("blocks", json!({"disruption": "Block"}));
    assert_eq!(
        converge(&mut world),
        [format!("create python-claimed {}", i32::MAX)]
    );
    world.claims.clear();
    claim_one(&mut world, "blocks", false);
    assert_eq!(converge(&mut world), Vec::<String>::new());
    world.sandboxes.remove("blocks");
    assert_eq!(converge(&mut world), ["delete python-claimed"]);
}

#[test]
fn nothing_is_written_before_the_budgets_are_known_or_without_the_right_to_read_them() {
    let mut world = full(4, json!({}));
    world.budgets.access = Access::Unknown;
    assert_eq!(converge(&mut world), Vec::<String>::new());
    assert!(!available(&world).contains("PodDisruptionBudget"));
    world.budgets.access = Access::Denied;
    assert_eq!(converge(&mut world), Vec::<String>::new());
    assert!(available(&world).contains("the operator may not list poddisruptionbudgets"));
}

#[test]
fn a_pool_whose_spec_is_invalid_keeps_its_budgets_as_they_are() {
    let mut world = full(4, json!({}));
    converge(&mut world);
    world.set(json!({"updateStrategy": {"maxUnavailable": "200%"}}));
    assert_eq!(converge(&mut world), Vec::<String>::new());
}

#[test]
fn one_write_is_under_way_at_a_time_and_a_rejected_one_is_tried_again_a_minute_later() {
    let mut world = full(4, json!({}));
    let failed = |class| {
        let failure = Failure {
            class,
            message: "quota".into(),
        };
        BudgetProgress::Failed(Tries::after(None, failure, world.now))
    };
    let rows = [
        (BudgetProgress::Idle, Some(0)),
        (BudgetProgress::Sent(None), None),
        (failed(Class::Unknown), Some(100)),
        (failed(Class::Conflict), Some(100)),
        (failed(Class::Rejected), Some(60_000)),
        (failed(Class::Denied), Some(60_000)),
    ];
    let begin = world.now;
    for (progress, after) in rows {
        world.budgets.progress = progress.clone();
        let said = available(&world).contains("PodDisruptionBudget python-unclaimed is not written: quota");
        assert_eq!(said, after == Some(60_000), "{progress:?}");
        let Some(after) = after else {
            assert_eq!(world.plan().budget_step, None);
            continue;
        };
        for (early, is_due) in [(1, false), (0, true)] {
            world.now = begin + SignedDuration::from_millis(after - early);
            let plan = world.plan();
            assert_eq!(plan.budget_step.is_some(), is_due || after == 0, "{progress:?}");
            if plan.budget_step.is_none() {
                let due = begin + SignedDuration::from_millis(after);
                assert!(plan.next.is_some_and(|next| next <= due), "{progress:?}");
            }
        }
        world.now = begin;
    }
}

#[test]
fn a_budget_changes_once_in_five_seconds_and_is_created_at_once() {
    let mut world = full(4, json!({}));
    world.budgets.written_at = Some(world.now);
    assert_eq!(converge(&mut world).len(), 2, "a creation waits for nothing");
    world.set(json!({"replicas": 8}));
    let begin = world.now;
    for (seconds, is_due) in [(0, false), (4, false), (5, true), (-1, true)] {
        world.now = begin + SignedDuration::from_secs(seconds);
        let plan = world.plan();
        assert_eq!(plan.budget_step.is_some(), is_due, "after {seconds} s");
        assert!(is_due || plan.next.is_some(), "after {seconds} s");
    }
}

#[test]
fn a_change_that_waits_holds_up_no_creation() {
    let mut world = full(4, json!({}));
    converge(&mut world);
    world.budgets.written_at = Some(world.now);
    world.set(json!({"replicas": 8}));
    world
        .budgets
        .budgets
        .retain(|budget| budget.key.name != "python-claimed");
    let step = world.plan().budget_step;
    assert_eq!(step.as_ref().map(BudgetStep::name), Some("python-claimed"));
}

/// So the explorer can do without budgets: whoever evicts is in its model a user who deletes any pod, whatever a budget allows.
#[test]
fn a_plan_writes_the_same_whatever_budgets_there_are_but_for_the_budgets() {
    type Change = fn(&mut World);
    let changes: [Change; 5] = [
        |world| _ = world.cordon("node-1"),
        |world| _ = world.set_image("image:2"),
        |world| _ = world.set(json!({"replicas": 2})),
        |world| {
            _ = world
                .claim("run", json!({}))
                .claim("other", json!({"disruption": "Allow"}))
        },
        |world| world.sandboxes.values_mut().next().unwrap().evict = true,
    ];
    let mine = json!({"maxUnavailable": 0, "selector": {"matchLabels": {"warmpool.dev/pool": "python"}}});
    let budgets = [
        listed(Vec::new()),
        listed(vec![budget("mine", None, &mine)]),
        listed(vec![budget("python-unclaimed", Some(POOL_UID), &mine)]),
        BudgetSnapshot {
            access: Access::Denied,
            ..BudgetSnapshot::default()
        },
        BudgetSnapshot {
            progress: BudgetProgress::Sent(None),
            ..listed(Vec::new())
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut world = on_two_nodes(4, json!({"updateStrategy": {"maxUnavailable": 1}}));
        change(&mut world);
        let writes = |world: &World| {
            let plan = world.plan();
            let phases = [
                PlanPhase::Eviction,
                PlanPhase::Scheduling,
                PlanPhase::Recreate,
                PlanPhase::Scale,
            ];
            let lines: Vec<_> = phases.map(|phase| lines(&plan, phase)).concat();
            assert_eq!(lines.len(), plan.actions.len());
            lines
        };
        let expected = writes(&world);
        assert!(!expected.is_empty(), "change {number} asks for something");
        for budgets in &budgets {
            world.budgets = budgets.clone();
            assert_eq!(writes(&world), expected, "change {number} with {budgets:?}");
        }
    }
}
