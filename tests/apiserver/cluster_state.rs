//! Checks that a namespace is at rest and every status is correct.
//!
//! At rest, pools are full, claims are decided, no pod is leaked, and each status equals a recount of the objects.

use crate::api::{Api, CLAIMS, PODS, POOLS};
use crate::check::event::{condition, is_ready, items, text};
use crate::scene::Scene;
use crate::wait;
use serde_json::Value;

/// Waits until the whole namespace is at rest: every pool full and up to date, every claim decided.
pub fn wait_until_at_rest(scene: &Scene, seconds: u64) -> Result<(), String> {
    wait::until("everything was at rest", seconds, || {
        ClusterState::read(scene)?.at_rest()
    })
}

/// Everything that there is in the namespace.
pub struct ClusterState {
    pub pools: Vec<Value>,
    pub claims: Vec<Value>,
    pub pods: Vec<Value>,
}

impl ClusterState {
    pub fn read(scene: &Scene) -> Result<Self, String> {
        Self::of(&scene.lab.api, &scene.namespace)
    }

    /// Everything in one namespace.
    pub fn of(api: &Api, namespace: &str) -> Result<Self, String> {
        Ok(Self {
            pools: api.list(POOLS, namespace)?,
            claims: api.list(CLAIMS, namespace)?,
            pods: api.list(PODS, namespace)?,
        })
    }

    pub fn at_rest(&self) -> Result<(), String> {
        self.nothing_leaked()?;
        self.every_claim_is_decided()?;
        self.pools.iter().try_for_each(|pool| {
            self.is_full(pool)?;
            self.status_is_true(pool)
        })
    }

    /// Unclaimed sandboxes of a pool, terminating ones left out.
    pub fn unclaimed(&self, pool: &str) -> Vec<&Value> {
        let is_unclaimed = |pod: &&Value| {
            controller(pod) == ("Pool", pool)
                && label(pod, "state") == "warm"
                && label(pod, "pool") == pool
                && !is_terminating(pod)
        };
        self.pods.iter().filter(is_unclaimed).collect()
    }

    pub fn claimed(&self, pool: &str) -> Vec<&Value> {
        let is_claimed = |pod: &&Value| controller(pod).0 == "SandboxClaim" && label(pod, "pool") == pool;
        self.pods.iter().filter(is_claimed).collect()
    }

    /// Each pod is the pool's or a claim's that says so; each claim's sandbox exists.
    pub fn nothing_leaked(&self) -> Result<(), String> {
        for pod in &self.pods {
            let name = text(pod, "/metadata/name");
            wait::ensure(!is_terminating(pod), || format!("pod {name} is terminating"))?;
            let (kind, owner) = controller(pod);
            match kind {
                "Pool" => wait::ensure(
                    label(pod, "pool") == owner && label(pod, "state") == "warm",
                    || {
                        format!(
                            "pod {name} of pool {owner} has labels {}",
                            pod["metadata"]["labels"]
                        )
                    },
                )?,
                "SandboxClaim" => self.is_held(pod, owner)?,
                other => return Err(format!("pod {name} is controlled by {other:?} {owner:?}")),
            }
        }
        for claim in &self.claims {
            // An expired claim still lists its former sandboxes.
            if text(claim, "/status/phase") == "Expired" {
                continue;
            }
            for sandbox in items(claim, "/status/sandboxes") {
                let there = self
                    .pods
                    .iter()
                    .any(|pod| pod["metadata"]["uid"] == sandbox["uid"]);
                wait::ensure(there, || {
                    format!("claim {} lost {sandbox}", text(claim, "/metadata/name"))
                })?;
            }
        }
        Ok(())
    }

    fn is_held(&self, pod: &Value, owner: &str) -> Result<(), String> {
        let name = text(pod, "/metadata/name");
        let Some(claim) = self.claims.iter().find(|c| text(c, "/metadata/name") == owner) else {
            return Err(format!(
                "pod {name} belongs to claim {owner}, which does not exist"
            ));
        };
        let uid = text(claim, "/metadata/uid");
        let labels = [("state", "claimed"), ("claim", owner), ("claim-uid", uid)];
        let labelled = labels.iter().all(|(key, value)| label(pod, key) == *value);
        wait::ensure(labelled, || {
            format!(
                "pod {name} of claim {owner} has labels {}",
                pod["metadata"]["labels"]
            )
        })?;
        let listed = items(claim, "/status/sandboxes")
            .iter()
            .any(|s| s["uid"] == pod["metadata"]["uid"]);
        wait::ensure(listed, || {
            format!("claim {owner} holds pod {name} and says {}", claim["status"])
        })
    }

    /// Each claim is Bound and Ready with all its sandboxes described truly, or has ended.
    pub fn every_claim_is_decided(&self) -> Result<(), String> {
        for claim in &self.claims {
            let (name, status) = (text(claim, "/metadata/name"), &claim["status"]);
            let said = || format!("claim {name} says {status}");
            match text(claim, "/status/phase") {
                "Failed" | "Expired" => continue,
                "Bound" => {}
                _ => return Err(said()),
            }
            let sandboxes = items(claim, "/status/sandboxes");
            let wanted = claim["spec"]["replicas"].as_i64().unwrap_or(1);
            wait::ensure(number(sandboxes.len()) == wanted, said)?;
            let mut all_ready = true;
            for sandbox in sandboxes {
                let pod = self.pods.iter().find(|p| p["metadata"]["uid"] == sandbox["uid"]);
                let pod = pod.ok_or_else(|| format!("{}, and pod {sandbox} is gone", said()))?;
                all_ready &= is_ready(pod);
                let truths = [
                    text(sandbox, "/name") == text(pod, "/metadata/name"),
                    text(sandbox, "/ip") == text(pod, "/status/podIP"),
                    text(sandbox, "/node") == text(pod, "/spec/nodeName"),
                    text(sandbox, "/revision") == label(pod, "revision"),
                    text(claim, "/status/pool") == label(pod, "pool"),
                ];
                wait::ensure(truths.iter().all(|t| *t), || {
                    format!("{} about pod {pod} ({truths:?})", said())
                })?;
            }
            let truths = [
                status["waitSeconds"]
                    .as_f64()
                    .is_some_and(|seconds| seconds >= 0.0),
                status["observedGeneration"] == claim["metadata"]["generation"],
                is(claim, "Bound", "True"),
                is(claim, "Ready", if all_ready { "True" } else { "False" }),
            ];
            wait::ensure(truths.iter().all(|t| *t), || format!("{} ({truths:?})", said()))?;
        }
        Ok(())
    }

    fn is_full(&self, pool: &Value) -> Result<(), String> {
        let (name, status) = (text(pool, "/metadata/name"), &pool["status"]);
        let wanted = match pool["spec"]["autoscaling"].is_null() {
            true => pool["spec"]["replicas"].as_i64(),
            false => status["desiredReplicas"].as_i64(),
        };
        let wanted = wanted.unwrap_or(-1);
        let here = self.unclaimed(name);
        let (usable, others): (Vec<&Value>, Vec<&Value>) = here
            .iter()
            .partition(|p| is_ready(p) && text(p, "/status/phase") == "Running");
        wait::ensure(
            number(here.len()) == wanted && number(usable.len()) == wanted,
            || {
                let others = others.iter().take(2).map(|p| {
                    let (pod, node) = (text(p, "/metadata/name"), text(p, "/spec/nodeName"));
                    format!("; {pod} on node {node:?} says {}", p["status"])
                });
                format!(
                    "pool {name} has {} unclaimed of {wanted}, {} usable, and says {status}{}",
                    here.len(),
                    usable.len(),
                    others.collect::<String>()
                )
            },
        )?;
        let complete = is(pool, "Available", "True")
            && is(pool, "Progressing", "True")
            && condition(pool, "Progressing").is_some_and(|c| c["reason"] == "RolloutComplete")
            && status["updateRevision"] == status["currentRevision"]
            && status["expectedUpdated"] == status["updated"]
            && status["updated"].as_i64() == Some(wanted)
            && status["desiredReplicas"].as_i64() == Some(wanted)
            && condition(pool, "ReplicaFailure").is_none()
            && condition(pool, "Exhausted").is_none();
        wait::ensure(complete, || {
            format!("pool {name} does not say that it is complete: {status}")
        })
    }

    /// I9: the status equals a recount of the objects.
    pub fn status_is_true(&self, pool: &Value) -> Result<(), String> {
        let (name, status) = (text(pool, "/metadata/name"), &pool["status"]);
        let (unclaimed, claimed) = (self.unclaimed(name), self.claimed(name));
        let revision = text(status, "/updateRevision");
        let available = |pod: &&&Value| is_ready(pod) && text(pod, "/status/phase") == "Running";
        let updated = |pod: &&&Value| label(pod, "revision") == revision;
        let asks = |claim: &&Value| {
            text(claim, "/spec/poolRef/name") == name
                && !matches!(text(claim, "/status/phase"), "Bound" | "Failed" | "Expired")
        };
        let recount = [
            ("replicas", unclaimed.len()),
            ("ready", unclaimed.iter().filter(|p| is_ready(p)).count()),
            ("available", unclaimed.iter().filter(available).count()),
            ("updated", unclaimed.iter().filter(updated).count()),
            (
                "updatedAvailable",
                unclaimed.iter().filter(updated).filter(available).count(),
            ),
            ("claimed", claimed.len()),
            ("total", unclaimed.len() + claimed.len()),
            ("pendingClaims", self.claims.iter().filter(asks).count()),
        ];
        for (field, count) in recount {
            wait::ensure(status[field].as_i64() == Some(number(count)), || {
                format!(
                    "pool {name} says {field} {} where a recount gives {count}: {status}",
                    status[field]
                )
            })?;
        }
        wait::ensure(
            status["observedGeneration"] == pool["metadata"]["generation"],
            || {
                format!(
                    "pool {name} at generation {} says {status}",
                    pool["metadata"]["generation"]
                )
            },
        )
    }
}

pub fn is(object: &Value, type_: &str, status: &str) -> bool {
    condition(object, type_).is_some_and(|c| c["status"] == status)
}

pub fn is_terminating(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// One of our labels, named without its prefix.
pub fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][format!("warmpool.dev/{key}")]
        .as_str()
        .unwrap_or_default()
}

/// Kind and name of the controller owner.
pub fn controller(object: &Value) -> (&str, &str) {
    let owner = items(object, "/metadata/ownerReferences")
        .iter()
        .find(|o| o["controller"] == true);
    owner.map_or(("", ""), |o| (text(o, "/kind"), text(o, "/name")))
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
