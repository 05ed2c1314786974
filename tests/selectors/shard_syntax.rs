//! The selector of a shard is written as for `kubectl get -l`.

use std::collections::BTreeMap;
use warmpool::model::shard_selector::ShardSelector;

fn parse(written: &str) -> ShardSelector {
    written.parse().unwrap()
}

/// Which of four pools it selects: without a label, and with three values of label `shard`.
fn selected(written: &str) -> [bool; 4] {
    let selector = parse(written);
    [None, Some("a"), Some("b"), Some("c")].map(|shard| {
        let labels = shard.map(|shard| ("shard".to_string(), shard.to_string()));
        selector.selects(&labels.into_iter().collect())
    })
}

#[test]
fn every_form_of_kubectl_selects_what_it_says() {
    assert_eq!(selected("shard=a"), [false, true, false, false]);
    assert_eq!(selected("shard == a"), [false, true, false, false]);
    assert_eq!(selected("shard!=a"), [true, false, true, true]);
    assert_eq!(selected("shard in (a, b)"), [false, true, true, false]);
    assert_eq!(selected("shard notin (a,b)"), [true, false, false, true]);
    assert_eq!(selected("shard"), [false, true, true, true]);
    assert_eq!(selected("!shard"), [true, false, false, false]);
    assert_eq!(selected("shard in (a,b),shard!=b"), [false, true, false, false]);
    assert_eq!(selected("shard="), [false; 4]);
    let labels = BTreeMap::from([("example.com/shard".to_string(), "A_1".to_string())]);
    assert!(parse("example.com/shard=A_1").selects(&labels));
}

#[test]
fn what_is_no_selector_is_refused_with_what_to_write() {
    for wrong in [
        "",
        " ",
        ",",
        "shard=a,",
        "=a",
        "shard=a b",
        "shard in a",
        "shard in (a",
        "shard of (a)",
        "a/b/c",
        "-a",
        "/a",
        "shard>1",
        "sh ard",
        "!",
        "shard=(a)",
    ] {
        let error = wrong.parse::<ShardSelector>().unwrap_err();
        assert!(error.contains("write KEY=VALUE"), "{wrong:?}: {error}");
    }
}

#[test]
fn selectors_of_the_same_requirements_have_one_hash_and_others_have_another() {
    let hash = parse("a=1,b in (2,3)").hash();
    assert_eq!(hash, parse("b in (3,2), a==1").hash());
    assert_ne!(hash, parse("a=1,b in (2,4)").hash());
    assert_eq!(hash.len(), 10);
    assert!(ShardSelector::default().selects_all() && !parse("a").selects_all());
}
