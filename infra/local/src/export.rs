//! The evaluation read and the training export from the command line, through the code of the function
//! `export`.

use std::io::Write;

use anyhow::{Context, Result};
use hearback_export::{Answer, Exporter, Trained};
use serde_json::{Map, Value};

/// What was written out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Rows.
    pub rows: u64,
    /// Rows that no model may learn from, and that were left out.
    pub excluded: u64,
    /// Rows without a turn, left out too.
    pub without_turn: u64,
    /// Of a day: where the bucket keeps it.
    pub manifest: Option<String>,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rows,
            excluded,
            without_turn,
            manifest,
        } = self;
        write!(
            f,
            "{rows} rows; left out: {excluded} excluded from training, {without_turn} without their turn"
        )?;
        match manifest {
            Some(manifest) => write!(f, "; {manifest}"),
            None => Ok(()),
        }
    }
}

/// Writes the rows that a request asks for as JSON Lines, however often the function hands the
/// rest on.
pub async fn export(
    exporter: &Exporter,
    s3: &aws_sdk_s3::Client,
    mut request: Map<String, Value>,
    out: &mut impl Write,
) -> Result<Summary> {
    let mut summary = Summary::default();
    loop {
        let resume = match exporter.handle(&request.clone().into(), None).await? {
            Answer::Trace(page) => {
                for row in &page.rows {
                    serde_json::to_writer(&mut *out, row)?;
                    out.write_all(b"\n")?;
                    summary.rows += 1;
                }
                summary.excluded += page.left_out.excluded;
                summary.without_turn += page.left_out.without_turn;
                page.resume
            }
            Answer::Day(run) => {
                if run.resume.is_none() {
                    copy(s3, &run.files, out).await?;
                }
                summary.rows = run.rows;
                summary.excluded = run.left_out.excluded;
                summary.without_turn = run.left_out.without_turn;
                summary.manifest = run.manifest;
                run.resume
            }
            Answer::Training(_) => anyhow::bail!("the request is for training"),
        };
        out.flush()?;
        let Some(resume) = resume else {
            return Ok(summary);
        };
        request.insert("resume".to_owned(), resume.into());
    }
}

/// Writes what a model can learn into the bucket, however often the function hands the rest on, and
/// answers where it is.
pub async fn training(exporter: &Exporter, mut request: Map<String, Value>) -> Result<Trained> {
    loop {
        let answer = exporter.handle(&request.clone().into(), None).await?;
        let Answer::Training(run) = answer else {
            anyhow::bail!("the request is not for training");
        };
        let Some(resume) = run.resume else {
            return Ok(run);
        };
        request.insert("resume".to_owned(), resume.into());
    }
}

/// Writes out what files of the bucket hold.
pub async fn copy(s3: &aws_sdk_s3::Client, files: &[String], out: &mut impl Write) -> Result<()> {
    for file in files {
        let (bucket, key) = file
            .strip_prefix("s3://")
            .and_then(|rest| rest.split_once('/'))
            .with_context(|| format!("{file} is no place in a bucket"))?;
        let found = s3.get_object().bucket(bucket).key(key).send().await;
        let mut body = found
            .with_context(|| format!("{file} cannot be read"))?
            .body;
        while let Some(bytes) = body.next().await {
            out.write_all(&bytes?)?;
        }
    }
    Ok(())
}
