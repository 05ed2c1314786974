//! Checks that the YAML of the pages is YAML. `stories/documents.rs` in tests/apiserver has the API server judge the objects.

use crate::pages::pages;
use serde::Deserialize;
use serde_json::Value;

#[test]
fn every_yaml_block_is_yaml() {
    let mut blocks = 0;
    for page in pages() {
        for block in page.text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            for document in serde_yaml_ng::Deserializer::from_str(block) {
                let read = Value::deserialize(document);
                assert!(
                    read.is_ok(),
                    "{}: {}:\n{block}",
                    page.path.display(),
                    read.unwrap_err()
                );
            }
            blocks += 1;
        }
    }
    assert!(blocks > 8, "only {blocks} blocks were found");
}
