//! Gives each test a namespace, records it, and checks its history.

use crate::api::{ACCOUNTS, CLAIMS, NAMESPACES, PODS, POOLS, QUOTAS, Resource};
use crate::check::deletions::{Deletion, deleted_by_others};
use crate::check::event::{Event, Kind, text};
use crate::check::requests::{Request, Requests};
use crate::check::{self, Rules, Verdict};
use crate::cluster::{OPERATOR, Recorded};
use crate::history::Watcher;
use crate::lab::Lab;
use crate::{objects, signal, wait};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashSet;

pub struct Scene {
    pub lab: &'static Lab,
    pub namespace: String,
    name: String,
    large: bool,
    watcher: Watcher,
    rules: RefCell<Rules>,
    /// How many operators had been started before.
    earlier_operators: usize,
}

/// Prefix of the names of stories that run with large numbers.
pub const BIG: &str = "big::";

/// What a test does, once its scene is set.
pub type Story = fn(&Scene) -> Result<(), String>;

/// Opens the scene, runs the story, and checks everything that happened meanwhile.
pub fn run_story(lab: &'static Lab, name: &str, story: Story) -> Result<(), String> {
    let scene = Scene::open(lab, name)?;
    let outcome = story(&scene);
    let path = scene.watcher.path.display().to_string();
    let judged = scene.close();
    let faults: Vec<String> = [outcome.err(), judged.err()].into_iter().flatten().collect();
    if faults.is_empty() {
        return Ok(());
    }
    lab.note_failure(format!("{name} failed: {}", in_one_line(&faults)));
    Err(format!(
        "{}\n\nhistory: {path}\nend of the operator's log:\n{}",
        faults.join("\n\n"),
        lab.operator_tail()
    ))
}

/// The beginning of each fault, without its line breaks.
fn in_one_line(faults: &[String]) -> String {
    let begin = |fault: &String| {
        let words: Vec<&str> = fault.split_whitespace().collect();
        words.join(" ").chars().take(400).collect::<String>()
    };
    faults.iter().map(begin).collect::<Vec<_>>().join(" | ")
}

/// How much later a request may arrive than another one of its plan over a connection that was open before. On a machine that
/// has many times more to do than it can, it was 1.4 s.
const REORDERED: SignedDuration = SignedDuration::from_secs(2);
/// The same where an operator is new: on such a machine it took 2.9 s to open a connection to the API server.
const REORDERED_WHILE_NEW: SignedDuration = SignedDuration::from_secs(5);

/// What holds unless a story declares otherwise.
fn rules() -> Rules {
    Rules {
        reordered: REORDERED,
        ..Rules::default()
    }
}

impl Scene {
    fn open(lab: &'static Lab, name: &str) -> Result<Self, String> {
        let short = name.rsplit("::").next().unwrap_or(name).replace('_', "-");
        let namespace = short
            .get(..60)
            .unwrap_or(&short)
            .trim_end_matches('-')
            .to_string();
        make_namespace(lab, &namespace)?;
        let path = lab.cluster.dir.join("history").join(format!("{namespace}.jsonl"));
        let watcher = Watcher::start(&lab.api, &namespace, &path)?;
        Ok(Self {
            lab,
            namespace,
            name: name.to_string(),
            large: name.starts_with(BIG),
            watcher,
            rules: RefCell::new(rules()),
            earlier_operators: lab.operators_started(),
        })
    }

    /// Declares something about what is to come.
    pub fn declare(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules.borrow_mut());
    }

    /// Declares that no operator runs, or that none reaches the API server, during `meanwhile`.
    pub fn while_operator_is_down<T>(
        &self,
        meanwhile: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let from = Timestamp::now();
        let outcome = meanwhile();
        self.declare(|rules| {
            rules.operator_down.push((from, Timestamp::now()));
        });
        outcome
    }

    /// Suspends the simulated nodes during `meanwhile`, so that no sandbox becomes available. Only for stories that have the lab
    /// to themselves.
    pub fn while_nodes_are_suspended<T>(
        &self,
        meanwhile: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let nodes = self.lab.cluster.pid_of("kwok").ok_or("no simulated nodes run")?;
        signal::send(nodes, "STOP")?;
        let outcome = meanwhile();
        signal::send(nodes, "CONT")?;
        outcome
    }

    /// Has the simulated nodes look at each pod again after the API server or etcd was gone. A kubelet writes the status of a pod
    /// until it succeeds. KWOK 0.8 gives up where a connection broke or etcd did not answer, and forgets the pod until it
    /// changes. A KWOK that starts anew forgets more: the pods that it lists before its watch shows that it holds its nodes.
    pub fn wake_pods(&self) -> Result<(), String> {
        let now = Timestamp::now().to_string();
        let woken = json!({"metadata": {"annotations": {"tests.warmpool.dev/woken": now}}});
        wait::until("every pod was annotated", 30, || {
            self.pods()?.iter().try_for_each(|pod| {
                let name = text(pod, "/metadata/name");
                match self.lab.api.merge(PODS, &self.namespace, name, &woken) {
                    Err(error) if error.code != 404 => Err(error.to_string()),
                    _ => Ok(()),
                }
            })
        })
    }

    /// Waits until a new pod is scheduled after the API server was gone. The scheduler's watches try again after a pause that
    /// doubles from 0.8 to 30 s, and up to as much again by chance; within two minutes of one outage the next goes on from there
    /// (`defaultBackoffReset` of client-go's reflector). So a claim may wait a minute for its sandbox without the operator's fault.
    pub fn await_scheduler(&self) -> Result<(), String> {
        let (api, name) = (&self.lab.api, self.namespace.as_str());
        let new = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "none"}], "terminationGracePeriodSeconds": 0},
        });
        wait::until("a new pod was scheduled", 90, || {
            let pod = match api.get(PODS, "default", name)? {
                Some(pod) => pod,
                None => api.create(PODS, "default", &new)?,
            };
            wait::ensure(pod["spec"]["nodeName"].is_string(), || pod.to_string())
        })?;
        Ok(api.delete(PODS, "default", name)?)
    }

    fn close(self) -> Result<(), String> {
        let mut rules = self.rules.into_inner();
        rules.ended = Some(Timestamp::now());
        if self.lab.operators_started() > self.earlier_operators {
            rules.reordered = rules.reordered.max(REORDERED_WHILE_NEW);
        }
        let events = self.watcher.finish()?;
        let verdict = judge(self.lab, &self.namespace, &events, &mut rules)?;
        self.lab.record(&self.name, verdict.figures.clone());
        self.lab.api.delete(NAMESPACES, "", &self.namespace)?;
        self.lab.shared_operator_is_well()?;
        let audit = self.lab.cluster.audit(&self.namespace)?;
        // A starting API server rejects everybody until it has read its roles.
        if let Some(denied) = audit
            .iter()
            .find(|w| w.user == OPERATOR && w.forbidden && !rules.gaps)
        {
            return Err(format!(
                "the operator's role does not allow what it tried: {denied:?}"
            ));
        }
        let shown: String = verdict
            .accusations
            .iter()
            .take(8)
            .map(|a| format!("{a}\n"))
            .collect();
        wait::ensure(verdict.accusations.is_empty(), || {
            format!(
                "{} accusations ({}):\n\n{shown}",
                verdict.accusations.len(),
                verdict.figures
            )
        })
    }

    /// The operator's writes to objects of this namespace so far.
    pub fn writes(&self, which: impl Fn(&Recorded) -> bool) -> Result<Vec<Recorded>, String> {
        let audit = self.lab.cluster.audit(&self.namespace)?;
        Ok(audit
            .into_iter()
            .filter(|w| w.user == OPERATOR && which(w))
            .collect())
    }

    /// The operator's requests so far.
    pub fn requests(&self) -> Result<Requests, String> {
        let audit = self.lab.cluster.audit(&self.namespace)?;
        Ok(requests(self.lab, &self.namespace, &audit))
    }

    /// How long it is from `from` to `to` without what the operator and the API server waited for a processor.
    pub fn elapsed(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        self.lab.processor_waits().elapsed(from, to)
    }

    /// The history so far. The watches may lag behind the API server.
    pub fn history(&self) -> Vec<Event> {
        self.watcher.so_far()
    }

    /// The history up to the present state of the API server.
    pub fn history_up_to_now(&self) -> Result<Vec<Event>, String> {
        let list = |resource| self.lab.api.list(resource, &self.namespace);
        let objects = [list(POOLS)?, list(CLAIMS)?, list(PODS)?].concat();
        wait::until("the watches told what the API server tells", 10, || {
            let events = self.watcher.so_far();
            let seen: HashSet<(&str, u64)> = events.iter().map(|e| (e.uid(), e.rv)).collect();
            let version = |object: &Value| text(object, "/metadata/resourceVersion").parse().unwrap_or(0);
            let is_seen = |object: &&Value| seen.contains(&(text(object, "/metadata/uid"), version(object)));
            let unseen = objects.iter().find(|object| !is_seen(object));
            wait::ensure(unseen.is_none(), || {
                unseen.map_or(String::new(), |o| o["metadata"].to_string())
            })?;
            Ok(events)
        })
    }

    /// How many objects of a kind there are, as far as the watcher has seen. It costs the API server nothing.
    pub fn count(&self, kind: Kind, which: impl Fn(&Value) -> bool) -> usize {
        self.watcher.count(kind, which)
    }

    /// The small number beside other stories, the large one when the story runs as `big::`.
    pub fn sized<T>(&self, small: T, large: T) -> T {
        if self.large { large } else { small }
    }

    pub fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Result<String, String> {
        let arguments: Vec<&str> = ["-n", &self.namespace]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        self.lab.cluster.kubectl(&arguments, stdin)
    }

    pub fn create(&self, resource: Resource, object: &Value) -> Result<Value, String> {
        let made = self.lab.api.create(resource, &self.namespace, object);
        made.map_err(|error| format!("{object} was refused: {error}"))
    }

    /// A quota `narrow` of so many pods, which the API server goes by from here on.
    pub fn create_pod_quota(&self, pods: usize) -> Result<(), String> {
        create_pod_quota(self.lab, &self.namespace, pods)
    }

    pub fn create_pool(&self, pool: &Value) -> Result<(), String> {
        self.create(POOLS, pool).map(drop)
    }

    /// A claim for a pool, with more fields of its spec where `more` has them.
    pub fn create_claim(&self, name: &str, pool: &str, more: &Value) -> Result<(), String> {
        self.create(CLAIMS, &objects::claim(name, pool, more)).map(drop)
    }

    pub fn patch_pool(&self, name: &str, patch: &Value) -> Result<(), String> {
        Ok(self
            .lab
            .api
            .merge(POOLS, &self.namespace, name, patch)
            .map(drop)?)
    }

    /// Changes the image of a pool's template, and with it the revision.
    pub fn roll_to(&self, pool: &str, image: &str) -> Result<(), String> {
        let at = "/spec/template/spec/containers/0/image";
        Ok(self
            .lab
            .api
            .replace_at(POOLS, &self.namespace, pool, at, json!(image))
            .map(drop)?)
    }

    pub fn delete_claim(&self, name: &str) -> Result<(), String> {
        Ok(self.lab.api.delete(CLAIMS, &self.namespace, name)?)
    }

    pub fn pool(&self, name: &str) -> Result<Value, String> {
        self.get(POOLS, name)
    }

    pub fn claim(&self, name: &str) -> Result<Value, String> {
        self.get(CLAIMS, name)
    }

    pub fn pod(&self, name: &str) -> Result<Value, String> {
        self.get(PODS, name)
    }

    /// The API server says that there is no such pod: no other failure counts.
    pub fn expect_no_pod(&self, name: &str) -> Result<(), String> {
        let pod = self.lab.api.get(PODS, &self.namespace, name)?;
        wait::ensure(pod.is_none(), || format!("pod {name} is still there"))
    }

    fn get(&self, resource: Resource, name: &str) -> Result<Value, String> {
        self.lab
            .api
            .get(resource, &self.namespace, name)?
            .ok_or_else(|| format!("there is no {resource:?} {name}"))
    }

    pub fn pods(&self) -> Result<Vec<Value>, String> {
        Ok(self.lab.api.list(PODS, &self.namespace)?)
    }

    pub fn claims(&self) -> Result<Vec<Value>, String> {
        Ok(self.lab.api.list(CLAIMS, &self.namespace)?)
    }

    pub fn pools(&self) -> Result<Vec<Value>, String> {
        Ok(self.lab.api.list(POOLS, &self.namespace)?)
    }
}

/// A namespace that pods can be created in.
pub fn make_namespace(lab: &Lab, name: &str) -> Result<(), String> {
    lab.api
        .create(NAMESPACES, "", &json!({"metadata": {"name": name}}))?;
    wait::until("the namespace had its default ServiceAccount", 30, || {
        let account = lab.api.get(ACCOUNTS, name, "default")?;
        account.map(drop).ok_or_else(|| "none".to_string())
    })
}

/// A quota `narrow` of so many pods in a namespace, which the API server goes by from here on.
pub fn create_pod_quota(lab: &Lab, namespace: &str, pods: usize) -> Result<(), String> {
    let hard = json!({"pods": pods.to_string()});
    let quota = json!({"metadata": {"name": "narrow"}, "spec": {"hard": hard}});
    lab.api.create(QUOTAS, namespace, &quota)?;
    wait::until("the quota was counted", 30, || {
        let there = lab.api.list(PODS, namespace)?.len().to_string();
        let quota = lab.api.get(QUOTAS, namespace, "narrow")?;
        let status = quota.unwrap_or_default()["status"].clone();
        wait::ensure(text(&status, "/used/pods") == there, || status.to_string())
    })
}

/// Checks the history of a namespace. Only deletions that an operator requested first count as the operator's. When it decided
/// is told by the proxy where there is one, because a fault may keep a request from the API server.
pub fn judge(lab: &Lab, namespace: &str, events: &[Event], rules: &mut Rules) -> Result<Verdict, String> {
    let audit = lab.cluster.audit(namespace)?;
    let deletions: Vec<Deletion> = audit.iter().filter_map(deletion).collect();
    rules.deleted_by_others = deleted_by_others(events, &deletions);
    rules.requests = requests(lab, namespace, &audit);
    rules.processor_waits = lab.processor_waits();
    Ok(check::judge(events, rules))
}

fn requests(lab: &Lab, namespace: &str, audit: &[Recorded]) -> Requests {
    let proxied = lab.writes_through_proxy(namespace);
    if proxied.is_empty() {
        Requests::new(audit.iter().filter_map(request))
    } else {
        Requests::new(proxied)
    }
}

fn request(write: &Recorded) -> Option<Request> {
    is_an_operator(&write.user).then(|| Request {
        at: write.at,
        answered: write.answered,
        verb: write.verb.clone(),
        resource: write.resource.clone(),
        name: write.name.clone(),
        code: u16::try_from(write.code).unwrap_or(0),
    })
}

fn deletion(write: &Recorded) -> Option<Deletion> {
    let deletes = (write.resource == "pods" && write.verb == "delete") || write.resource == "pods/eviction";
    (deletes && write.code < 300).then(|| Deletion {
        at: write.at,
        pod: write.name.clone(),
        by_operator: is_an_operator(&write.user),
    })
}

/// Outside kube-system, only operators have service accounts. Most share one; some stories have their own.
fn is_an_operator(user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:");
    account.is_some_and(|account| !account.starts_with("kube-system:"))
}
