//! Checks that random objects from the schemas harm no other pool.

use crate::api::{CLAIMS, NAMESPACES, POOLS, Resource};
use crate::check::event::text;
use crate::claimants::Claimants;
use crate::cluster::repository;
use crate::cluster_state::wait_until_at_rest;
use crate::lab::{number, seed};
use crate::objects::{claim, pool};
use crate::scene::{Scene, make_namespace};
use crate::wait;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

/// Most sandboxes that an object asks for in one field: the machine is to be spared.
const MOST: i64 = 3;
/// Names that objects have and refer to.
const NAMES: usize = 40;
const WORDS: [&str; 12] = [
    "",
    "python",
    "drawn-1",
    "Always",
    "warmpool.dev/pool",
    "a=b",
    "1",
    "10Mi",
    "sandbox:1",
    "🦀",
    "/",
    "x.y/z",
];
const TIMES: [&str; 3] = [
    "2020-01-01T00:00:00Z",
    "2100-01-01T00:00:00Z",
    "9999-12-29T23:59:59Z",
];

/// Draws values for a part of an OpenAPI schema.
struct Generator(StdRng);

impl Generator {
    fn one_of<T: Clone>(&mut self, all: &[T], otherwise: T) -> T {
        all.choose(&mut self.0).cloned().unwrap_or(otherwise)
    }

    /// Something that is seldom right.
    fn odd(&mut self) -> Value {
        let all = [
            json!(null),
            json!(true),
            json!(-1),
            json!(i64::MAX),
            json!(1.5),
            json!(""),
            json!("200%"),
            json!({}),
            json!([]),
            json!([null]),
            json!({"": {"": 0}}),
        ];
        self.one_of(&all, Value::Null)
    }

    fn draw(&mut self, schema: &Value) -> Value {
        if self.0.random_bool(0.01) {
            return self.odd();
        }
        if let Some(words) = schema["enum"].as_array() {
            return self.one_of(words, Value::Null);
        }
        if schema["x-kubernetes-int-or-string"] == true {
            let all = [
                json!(0),
                json!(1),
                json!(2),
                json!("0%"),
                json!("25%"),
                json!("100%"),
                json!("x"),
            ];
            return self.one_of(&all, Value::Null);
        }
        match (text(schema, "/type"), text(schema, "/format")) {
            ("object", _) => self.object(schema),
            ("array", _) => (0..self.0.random_range(0..3))
                .map(|_| self.draw(&schema["items"]))
                .collect(),
            ("integer" | "number", _) => self.one_of(&[0, 1, 1, 2, 3, 30, -1], 0).into(),
            ("boolean", _) => self.0.random_bool(0.5).into(),
            ("string", "date-time") => self.one_of(&TIMES, "").into(),
            _ => self.one_of(&WORDS, "").into(),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut drawn = Map::new();
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.0.random_range(0..3) {
                let key = self.one_of(&WORDS, "");
                drawn.insert(key.into(), self.draw(&schema["additionalProperties"]));
            }
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let chance = if required.iter().any(|r| r == name) {
                0.97
            } else {
                0.2
            };
            if self.0.random_bool(chance) {
                drawn.insert(name.clone(), self.draw(property));
            }
        }
        drawn.into()
    }

    fn name(&mut self) -> String {
        format!("drawn-{}", self.0.random_range(0..NAMES))
    }

    fn pool(&mut self, schema: &Value, name: &str) -> Value {
        let mut drawn = pool(name, 1, &json!({}));
        let good = drawn["spec"]["template"].take();
        drawn["spec"] = self.draw(schema);
        if let Some(spec) = drawn["spec"].as_object_mut() {
            spec.insert("replicas".into(), self.0.random_range(-1..=MOST).into());
            if self.0.random_bool(0.6) {
                spec.remove("templateRef");
                spec.insert("template".into(), good);
            }
        }
        drawn
    }

    fn claim(&mut self, schema: &Value, name: &str) -> Value {
        let mut drawn = claim(name, "", &json!({}));
        drawn["spec"] = self.draw(schema);
        if let Some(spec) = drawn["spec"].as_object_mut() {
            spec.insert("replicas".into(), self.0.random_range(0..=MOST).into());
            if self.0.random_bool(0.6) {
                spec.remove("poolSelector");
                spec.insert("poolRef".into(), json!({"name": self.name()}));
            }
        }
        drawn
    }
}

/// The schema of the spec in one of the files in crds/.
fn schema(plural: &str) -> Result<Value, String> {
    let path = repository().join(format!("crds/warmpool.dev_{plural}.yaml"));
    let file = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let crd: Value = serde_yaml_ng::from_str(&file).map_err(|e| format!("{}: {e}", path.display()))?;
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    crd.pointer(at)
        .cloned()
        .ok_or_else(|| format!("{} has no {at}", path.display()))
}

/// Creates or replaces an object. True if the API server accepted it.
fn store(scene: &Scene, resource: Resource, namespace: &str, object: &Value) -> Result<bool, String> {
    let (api, name) = (&scene.lab.api, text(object, "/metadata/name"));
    let put = || match api.create(resource, namespace, object) {
        Err(error) if error.code == 409 => {
            api.replace_at(resource, namespace, name, "/spec", object["spec"].clone())
        }
        answer => answer,
    };
    // The operator may delete a claim between the two requests, once its ttlSecondsAfterFinished has passed.
    let answer = match put() {
        Err(error) if error.code == 404 => put(),
        answer => answer,
    };
    match answer {
        Ok(_) => Ok(true),
        Err(error) if [400, 422].contains(&error.code) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

/// Gives every pool a valid spec, and waits until each is full.
fn repair_all_pools(scene: &Scene, namespace: &str) -> Result<(), String> {
    let api = &scene.lab.api;
    for claim in api.list(CLAIMS, namespace)? {
        api.delete(CLAIMS, namespace, text(&claim, "/metadata/name"))?;
    }
    let good = pool("good", 1, &json!({}))["spec"].take();
    for pool in api.list(POOLS, namespace)? {
        api.replace_at(
            POOLS,
            namespace,
            text(&pool, "/metadata/name"),
            "/spec",
            good.clone(),
        )?;
    }
    wait::until("every mended pool was full and up to date", 120, || {
        api.list(POOLS, namespace)?.iter().try_for_each(|pool| {
            let status = &pool["status"];
            let full = status["observedGeneration"] == pool["metadata"]["generation"]
                && status["available"] == 1
                && status["total"] == 1
                && status["currentRevision"] == status["updateRevision"];
            wait::ensure(full, || {
                format!("{}: {}, {status}", text(pool, "/metadata/name"), pool["spec"])
            })
        })
    })
}

pub fn objects_drawn_from_the_schemas_hurt_no_other_pool(scene: &Scene) -> Result<(), String> {
    let objects = number("OBJECTS", 200)?;
    let mut artist = Generator(StdRng::seed_from_u64(seed()?));
    let (pools, claims) = (schema("pools")?, schema("sandboxclaims")?);
    let mut operator = scene.lab.start_operator()?;
    for name in ["python", "node"] {
        scene.create_pool(&pool(name, 6, &json!({})))?;
    }
    wait_until_at_rest(scene, 60)?;
    let namespace = "objects-drawn-from-the-schemas";
    make_namespace(scene.lab, namespace)?;
    let load = [Claimants::start(scene, "python"), Claimants::start(scene, "node")];
    let mut taken = 0;
    for _ in 0..objects {
        let name = artist.name();
        let stored = if artist.0.random_bool(0.6) {
            store(scene, POOLS, namespace, &artist.pool(&pools, &name))?
        } else {
            store(scene, CLAIMS, namespace, &artist.claim(&claims, &name))?
        };
        taken += u64::from(stored);
        operator.lives()?;
    }
    load.into_iter().try_for_each(|load| load.stop().map(drop))?;
    wait_until_at_rest(scene, 60)?;
    repair_all_pools(scene, namespace)?;
    scene.lab.print_at_end(format!(
        "{objects} objects drawn from the schemas, {taken} taken by the API server"
    ));
    scene.lab.api.delete(NAMESPACES, "", namespace)?;
    wait::ensure(taken > objects / 20 && taken < objects, || {
        format!("{taken} of {objects} were taken")
    })?;
    operator.stop()
}
