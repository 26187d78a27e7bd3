//! The detector on the sentences that it is for.

use super::*;

mod languages;
mod sentences;

#[test]
fn every_built_in_file_is_whole() {
    for (name, text) in detector::embedded_files() {
        let errors = Detector::with_additions([(name, text)])
            .err()
            .unwrap_or_default();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}
