//! Reads the stories of `stories.yaml`.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    pub story: String,
    /// Fields of the pool, for every step.
    #[serde(default)]
    pub pool: Map<String, Value>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Fields of the pool in this step.
    #[serde(default)]
    pub pool: Map<String, Value>,
    #[serde(default)]
    pub finished: bool,
    pub has: Sandboxes,
    pub figures: Figures,
    pub ours: Option<Figures>,
    pub because: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Sandboxes {
    pub old: usize,
    pub old_evicted: usize,
    pub new: usize,
    pub new_evicted: usize,
    pub new_warming: usize,
    pub new_warming_evicted: usize,
}

impl Sandboxes {
    pub fn of_new(&self) -> usize {
        self.new + self.new_evicted + self.new_warming + self.new_warming_evicted
    }

    pub fn all(&self) -> usize {
        self.of_new() + self.old + self.old_evicted
    }

    pub fn available(&self) -> usize {
        self.all() - self.new_warming - self.new_warming_evicted
    }
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Figures {
    pub missing: usize,
    pub missing_old: usize,
    pub surplus: usize,
    pub surplus_old: usize,
    pub may_go: usize,
    pub to_move: usize,
    pub move_limit: usize,
}

pub fn all() -> Vec<Story> {
    serde_yaml_ng::from_str(include_str!("stories.yaml")).unwrap()
}
