//! Small worlds: the pool they begin with, and how many disturbances of each kind may come.
//!
//! No world has PodDisruptionBudgets. No plan reads them but for the next write of a budget, as `disruption_budgets` in
//! tests/plan_laws shows, and whoever evicts a pod is here a user who deletes it (`removals`), whatever a budget allows.

use crate::api_server::{ApiServer, Kind};
use crate::operator::Operator;
use crate::search::RESTLESS;
use crate::state::State;
use serde_json::{Value, json};
use warmpool::model::request::Request;

/// What may still come from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Claims to be created, in this order: name and fields of the spec.
    pub claims: &'static [(String, Value)],
    /// What users do to pools and to the PodTemplate, in this order: its name, and a merge patch of its spec or template, or
    /// null to delete it, or true to create it anew.
    pub edits: &'static [(&'static str, Value)],
    /// Operators to be killed.
    pub crashes: u8,
    /// Requests or answers to be lost.
    pub losses: u8,
    /// Watches to be broken.
    pub relists: u8,
    /// Times that watches are silent for half a minute.
    pub stalls: u8,
    /// Times that something becomes due because nothing happens for long.
    pub passes: u8,
    /// Claims to be deleted.
    pub unclaims: u8,
    /// Pods to be evicted by label.
    pub evictions: u8,
    /// Pods to fail.
    pub deaths: u8,
    /// Pods that are not Ready to stay so for good, until the operator gives them up.
    pub hangs: u8,
    /// Pods to become not Ready, or to be admitted no more.
    pub unready: u8,
    /// Pods to be deleted by a user.
    pub removals: u8,
    /// Revisions to be deleted by a user.
    pub prunes: u8,
    /// Times that a quota forbids pods for a while.
    pub quotas: u8,
    /// Bindings to be rejected.
    pub rejections: u8,
    /// Nodes to be cordoned.
    pub cordons: u8,
    /// Cordons to be taken back.
    pub uncordons: u8,
    /// Cordoned nodes to be deleted.
    pub lost_nodes: u8,
}

/// Name of the PodTemplate.
pub const TEMPLATE: &str = "tp";

/// A world and what may happen in it.
#[derive(Debug)]
pub struct Scene {
    pub name: &'static str,
    pub operators: usize,
    /// Pools and their specs. The first is `pl`.
    pub pools: Vec<(&'static str, Value)>,
    /// The nodes; without any, nothing is known of nodes, and one takes every pod.
    pub nodes: &'static [&'static str],
    /// The template of the PodTemplate, where there is one.
    pub template: Option<Value>,
    pub left: Left,
    /// The claims have been served before anything else happens.
    pub served: bool,
    /// A leader that is gone has bound one more sandbox to the first claim than it wants, and every operator has just seen that.
    pub surplus: bool,
    /// A request that was given up may be served at any later time.
    pub late: bool,
    /// Time passes also while something else can still happen.
    pub hasty: bool,
    /// A pod that does not run yet has no node, and goes at once when it is deleted.
    pub nodeless: bool,
    /// Pools and claims stay for a while when they are deleted.
    pub lingering: bool,
    /// The second pool has not the label of the first.
    pub apart: bool,
    /// Kinds whose events reach an operator at any later time, and not at once.
    pub lagging: &'static [Kind],
    /// The status of a pool is written at the moment it is planned: it decides nothing here.
    pub quiet: bool,
    /// Nothing happens between the serving of a request and its answer.
    pub prompt: bool,
    /// What is read may change before the answer arrives.
    pub slow_reads: bool,
    /// One operator, and nothing but that and claims takes sandboxes away: budgets hold at every moment.
    pub strict: bool,
}

impl Scene {
    /// The request is served at the moment it is sent.
    pub fn has_written(&self, request: &Request) -> bool {
        self.quiet && matches!(request, Request::WritePool(_))
    }

    /// A pool `pl` with the label `lang: any` that keeps `replicas` warm, one operator, and nothing that disturbs.
    pub fn new(name: &'static str, replicas: usize) -> Self {
        // Nothing times out in a world in which no time passes.
        let never = i32::MAX;
        Self {
            name,
            operators: 1,
            pools: vec![(
                "pl",
                json!({
                    "replicas": replicas,
                    "warmUpDeadlineSeconds": never, "progressDeadlineSeconds": never,
                    "updateStrategy": {"maxUnavailable": 1, "maxSurge": 0},
                    "claimDefaults": {"waitTimeoutSeconds": never},
                    "template": {"spec": {"containers": [{"name": "sandbox", "image": "one"}]}},
                }),
            )],
            nodes: &[],
            template: None,
            left: Left::default(),
            served: false,
            surplus: false,
            late: false,
            hasty: false,
            nodeless: false,
            lingering: false,
            apart: false,
            lagging: &Kind::ALL,
            quiet: false,
            prompt: false,
            slow_reads: false,
            strict: false,
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> &'static Self {
        change(&mut self);
        Box::leak(Box::new(self))
    }

    fn first(&self) -> &Value {
        &self.pools[0].1
    }

    /// Fields of the first pool's spec that differ.
    pub fn pool(&mut self, fields: Value) {
        json_patch::merge(&mut self.pools[0].1, &fields);
    }

    /// The template of the first pool moves to the PodTemplate.
    pub fn move_template(&mut self) {
        let spec = self.pools[0].1.as_object_mut().unwrap();
        self.template = spec.remove("template");
        spec.insert("templateRef".into(), json!({"name": TEMPLATE}));
    }

    /// Pods run on these nodes, and wait for ever to be replaced when one is cordoned.
    pub fn on_nodes(&mut self, nodes: &'static [&'static str]) {
        self.nodes = nodes;
        for (_, spec) in &mut self.pools {
            spec["disruption"] = json!({"drainDeadlineSeconds": i32::MAX});
        }
    }

    /// A second pool, `po`, with the label of the first and a spec that differs in these fields.
    pub fn another_pool(&mut self, fields: Value) {
        let mut spec = self.first().clone();
        json_patch::merge(&mut spec, &fields);
        self.pools.push(("po", spec));
    }

    /// Claims on the first pool but for these fields, named `a`, `b` and so on, to be created one after the other.
    pub fn claims(&mut self, specs: impl IntoIterator<Item = Value>) {
        let claim = |(name, fields): (char, Value)| {
            let mut spec = json!({"poolRef": {"name": "pl"}});
            json_patch::merge(&mut spec, &fields);
            (name.to_string(), spec)
        };
        let claims: Vec<_> = ('a'..='z').zip(specs).map(claim).collect();
        self.left.claims = claims.leak();
    }

    pub fn edits(&mut self, edits: impl IntoIterator<Item = Value>) {
        self.left.edits = edits
            .into_iter()
            .map(|edit| ("pl", edit))
            .collect::<Vec<_>>()
            .leak();
    }

    /// The pool is warm and at rest, with or without its claims, and every operator knows it.
    pub fn begin(&'static self) -> State {
        let mut state = State {
            scene: self,
            api_server: ApiServer::default(),
            operators: vec![self.operator()],
            late: Vec::new(),
            left: Left::default(),
            milliseconds: 0,
            ghost: crate::laws::Ghost::default(),
        };
        state.api_server.nodeless = self.nodeless;
        state.api_server.lingering = self.lingering;
        state.api_server.without_nodes = self.nodes.is_empty();
        for name in self.nodes {
            let node = json!({"metadata": {"name": name}, "spec": {}});
            let now = state.now().to_string();
            state.api_server.create(Kind::Nodes, node, &now);
        }
        for (name, _) in &self.pools {
            state
                .api_server
                .create(Kind::Pools, self.object(name), &state.now().to_string());
        }
        if self.template.is_some() {
            let now = state.now().to_string();
            state
                .api_server
                .create(Kind::Templates, self.object(TEMPLATE), &now);
        }
        let mut left = self.left.clone();
        if self.served {
            for (name, spec) in std::mem::take(&mut left.claims) {
                let claim = json!({"metadata": {"name": name}, "spec": spec});
                let now = state.now().to_string();
                state.api_server.create(Kind::Claims, claim, &now);
            }
        }
        state.api_server.news.clear();
        state = rest(state);
        state.operators.resize_with(self.operators, || self.operator());
        state = rest(state);
        state.left = left;
        if self.surplus {
            state.bind_surplus();
        }
        state
    }

    /// An operator that has just started.
    pub fn operator(&self) -> Operator {
        Operator::started(self.template.is_some(), !self.nodes.is_empty())
    }

    /// The pool of that name, or the PodTemplate, as it is at the beginning.
    pub fn object(&self, name: &str) -> Value {
        if name == TEMPLATE {
            return json!({"metadata": {"name": name}, "template": self.template});
        }
        let spec = self
            .pools
            .iter()
            .find(|(pool, _)| *pool == name)
            .map(|(_, spec)| spec);
        let lang = if self.apart && name == "po" {
            "other"
        } else {
            "any"
        };
        json!({"metadata": {"name": name, "labels": {"lang": lang}}, "spec": spec})
    }

    /// The most sandboxes that one claim could ever have.
    pub fn most(&self) -> usize {
        let most = self.first().pointer("/capacity/maxTotal").and_then(Value::as_u64);
        most.map_or(usize::MAX, |most| usize::try_from(most).unwrap())
    }

    /// Pools may be deleted.
    pub fn deletes_pools(&self) -> bool {
        let mut edits = self.left.edits.iter();
        edits.any(|(name, edit)| *name != TEMPLATE && edit.is_null())
    }

    /// An edit brings a template whose pods never become Ready.
    pub fn breaks(&self) -> bool {
        self.left
            .edits
            .iter()
            .any(|(_, edit)| edit.to_string().contains("broken"))
    }
}

fn rest(mut state: State) -> State {
    for _ in 0..RESTLESS {
        let Some(action) = state.undisturbed() else {
            return state;
        };
        state = state
            .after(&action)
            .expect("it is enabled")
            .expect("no law is broken");
    }
    panic!("no rest at the beginning: {:#?}", state.scene)
}
