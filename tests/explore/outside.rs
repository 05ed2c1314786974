//! What others do: kubelets, the garbage collector and users.

use crate::action::Action;
use crate::api_server::Kind;
use crate::scene::TEMPLATE;
use crate::state::State;
use serde_json::{Value, json};

impl State {
    /// What others than operators do; `None` when `action` is none of that, or cannot happen now.
    pub fn outside(&mut self, action: &Action, now: &str) -> Option<()> {
        let api_server = &mut self.api_server;
        let condition =
            |status: &str| json!([{"type": "Ready", "status": status, "lastTransitionTime": now}]);
        match action {
            Action::Ready(name) => {
                let free = api_server.free_node();
                let is_scheduled = |pod: &Value| pod["spec"]["nodeName"].is_string();
                let pod = api_server.get(Kind::Pods, name)?;
                (free.is_some() || is_scheduled(&pod.value)).then_some(())?;
                api_server.edit(Kind::Pods, name, |pod| {
                    if let Some(node) = free.filter(|_| !is_scheduled(pod)) {
                        pod["spec"]["nodeName"] = json!(node);
                    }
                    let ready = condition("True");
                    pod["status"] = json!({"phase": "Running", "podIP": "10.0.0.1", "conditions": ready});
                });
            }
            Action::Unready(name) => {
                self.left.unready = self.left.unready.checked_sub(1)?;
                api_server.edit(Kind::Pods, name, |pod| {
                    pod["status"]["conditions"] = condition("False")
                });
            }
            Action::Hang(name) => {
                self.left.hangs = self.left.hangs.checked_sub(1)?;
                api_server.edit(Kind::Pods, name, |pod| {
                    pod["metadata"]["labels"]["hangs"] = json!("yes");
                });
            }
            Action::Die(name) => {
                self.left.deaths = self.left.deaths.checked_sub(1)?;
                // Ready stays as it was, as on what the pod garbage collector marks so.
                api_server.edit(Kind::Pods, name, |pod| pod["status"]["phase"] = json!("Failed"));
            }
            Action::Admit(name) => api_server.edit(Kind::Pods, name, |pod| {
                pod["metadata"]["labels"]["admitted"] = json!("yes");
            }),
            Action::Revoke(name) => {
                self.left.unready = self.left.unready.checked_sub(1)?;
                api_server.edit(Kind::Pods, name, |pod| {
                    pod["metadata"]["labels"]["admitted"] = json!("no");
                });
            }
            Action::Release(name) => api_server.edit(Kind::Pods, name, |pod| {
                pod["metadata"]["labels"]["hold"] = json!("no");
            }),
            Action::End(name) => {
                api_server.get(Kind::Pods, name).filter(|pod| pod.terminating())?;
                api_server.end(Kind::Pods, name.clone());
            }
            Action::Finish(kind, name) => {
                api_server
                    .get(*kind, name)
                    .filter(|object| object.terminating())?;
                api_server.end(*kind, name.clone());
            }
            Action::Collect(name) => {
                let pod = api_server.get(Kind::Pods, name)?;
                (api_server.is_orphan(pod) || api_server.is_without_node(pod)).then_some(())?;
                api_server.delete(Kind::Pods, name.clone(), now);
            }
            Action::Claim => {
                let (name, spec) = self.left.claims.first()?.clone();
                api_server.get(Kind::Claims, &name).is_none().then_some(())?;
                self.left.claims = &self.left.claims[1..];
                api_server.create(
                    Kind::Claims,
                    json!({"metadata": {"name": name}, "spec": spec}),
                    now,
                );
            }
            Action::Unclaim(name) => {
                self.left.unclaims = self.left.unclaims.checked_sub(1)?;
                api_server.delete(Kind::Claims, name.clone(), now);
            }
            Action::Edit => {
                let (name, edit) = self.left.edits.first()?;
                self.left.edits = &self.left.edits[1..];
                let (kind, field) = match *name {
                    TEMPLATE => (Kind::Templates, "template"),
                    _ => (Kind::Pools, "spec"),
                };
                match edit {
                    Value::Null => api_server.delete(kind, name.to_string(), now),
                    Value::Bool(_) if api_server.get(kind, name).is_none() => {
                        api_server.create(kind, self.scene.object(name), now);
                    }
                    Value::Bool(_) => {}
                    change => api_server.edit(kind, name, |object| {
                        json_patch::merge(&mut object[field], change);
                    }),
                }
            }
            Action::Evict(name) => {
                self.left.evictions = self.left.evictions.checked_sub(1)?;
                api_server.edit(Kind::Pods, name, |pod| {
                    pod["metadata"]["labels"]["warmpool.dev/evict"] = json!("true");
                });
            }
            Action::Remove(name) => {
                self.left.removals = self.left.removals.checked_sub(1)?;
                api_server.delete(Kind::Pods, name.clone(), now);
            }
            Action::Cordon(name) => {
                api_server.may_be_cordoned(name).then_some(())?;
                self.left.cordons = self.left.cordons.checked_sub(1)?;
                api_server.edit(Kind::Nodes, name, |node| {
                    node["spec"]["unschedulable"] = json!(true);
                });
            }
            Action::Uncordon(name) => {
                api_server.is_cordoned(name).then_some(())?;
                self.left.uncordons = self.left.uncordons.checked_sub(1)?;
                api_server.edit(Kind::Nodes, name, |node| {
                    node["spec"]["unschedulable"] = json!(false);
                });
            }
            Action::Lost(name) => {
                api_server.is_cordoned(name).then_some(())?;
                self.left.lost_nodes = self.left.lost_nodes.checked_sub(1)?;
                api_server.end(Kind::Nodes, name.clone());
            }
            Action::Prune(name) => {
                self.left.prunes = self.left.prunes.checked_sub(1)?;
                api_server.delete(Kind::Revisions, name.clone(), now);
            }
            Action::Forbid => {
                self.left.quotas = self.left.quotas.checked_sub(1)?;
                api_server.quota = true;
            }
            Action::Allow => api_server.quota = false,
            _ => return None,
        }
        Some(())
    }
}
