//! Checks `rollout history`: the listed revisions and the table.

use crate::objects::{history, revision};

#[test]
fn revisions_are_listed_by_number_with_their_change_causes() {
    let all = [
        revision(10, "image:3", Some("third")),
        revision(9, "image:2", None),
        revision(2, "image:1", Some("the\nfirst\tone")),
    ];
    assert_eq!(
        history(all.to_vec()).table(),
        "REVISION  CHANGE-CAUSE\n2         the first one\n9         <none>\n10        third\n"
    );
}

#[test]
fn a_history_without_revisions_shows_a_message() {
    assert_eq!(history(Vec::new()).table(), "No rollout history found.\n");
}

#[test]
fn revisions_of_a_deleted_pool_of_the_same_name_are_not_listed() {
    let mut foreign = revision(1, "image:0", None);
    foreign.metadata.owner_references.as_mut().unwrap()[0].uid = "earlier".into();
    let mut uncontrolled = revision(2, "image:0", None);
    uncontrolled.metadata.owner_references.as_mut().unwrap()[0].controller = None;
    let all = history(vec![foreign, uncontrolled, revision(3, "image:1", None)]);
    let numbers: Vec<i64> = all.iter().map(|r| r.revision).collect();
    assert_eq!(numbers, [3]);
}
