//! Checks what an EvictionRequest does to a pool (I6).

use crate::drains::{evictions, on_two_nodes, only, said};
use serde_json::json;

#[test]
fn a_sandbox_that_an_eviction_request_names_goes_once_its_replacement_is_available() {
    let mut world = on_two_nodes(1, json!({"updateStrategy": {"maxUnavailable": 0}}));
    let sandbox = only(&mut world);
    let (name, uid) = (sandbox.key.name.clone(), sandbox.uid.clone());
    let now = world.now;
    world.nodes.eviction_requested.insert(uid, now);
    world.step();
    assert!(
        said(&world).contains("sandboxes leave their nodes (1 EvictionRequest)"),
        "{}",
        said(&world)
    );
    assert_eq!((world.unclaimed().count(), world.available()), (2, 1));
    world.pass_second(|_| true);
    assert_eq!(evictions(&world), [format!("DeletePod {name} EvictionRequest")]);
    world.converge();
    assert_eq!((world.unclaimed().count(), world.available()), (1, 1));
    assert!(world.sandboxes.values().all(|sandbox| sandbox.key.name != name));
}
