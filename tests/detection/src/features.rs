//! Writes what the learned model sees of each message, for `train.py`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use hearback_detection::Detector;

use crate::Labelled;

/// Writes the features of all messages to files of a folder, as little-endian numbers of 32 bits: `counts` has the number
/// of features of each message, `indexes` and `values` have the features, and `blocks` has the index of the first feature
/// of each block, and the number of features.
pub(crate) fn write(labelled: &[Labelled], folder: &Path) -> anyhow::Result<()> {
    let open = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let (mut counts, mut indexes, mut values) =
        (open("counts")?, open("indexes")?, open("values")?);
    let detector = Detector::embedded();
    for each in labelled {
        let features = detector.features(&each.exchange());
        counts.write_all(&u32::try_from(features.len())?.to_le_bytes())?;
        for (index, value) in features {
            indexes.write_all(&u32::try_from(index)?.to_le_bytes())?;
            values.write_all(&value.to_le_bytes())?;
        }
    }
    let mut blocks = open("blocks")?;
    for first in Detector::feature_blocks() {
        blocks.write_all(&u32::try_from(first)?.to_le_bytes())?;
    }
    for mut file in [counts, indexes, values, blocks] {
        file.flush()?;
    }
    Ok(())
}
