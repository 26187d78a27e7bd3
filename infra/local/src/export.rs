//! `hearback export`: the evaluation read and the training export, with the code of the function `export`.

use std::io::Write;

use anyhow::{Context, Result};
use hearback_export::{Answer, Exporter, SkippedRows, TrainingSet};
use serde_json::{Map, Value};

/// The result of an evaluation read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ExportSummary {
    /// Rows that were written.
    pub rows: u64,
    /// What was left out.
    pub left_out: SkippedRows,
    /// For a day: the URI of its manifest in the bucket.
    pub manifest: Option<String>,
}

impl std::fmt::Display for ExportSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rows,
            left_out,
            manifest,
        } = self;
        let SkippedRows {
            excluded,
            without_turn,
            unreadable,
        } = left_out;
        write!(
            f,
            "{rows} rows; left out: {excluded} excluded from training, {without_turn} without their turn, \
             {unreadable} unreadable"
        )?;
        match manifest {
            Some(manifest) => write!(f, "; {manifest}"),
            None => Ok(()),
        }
    }
}

/// Writes the requested rows as JSON Lines; repeats the invocation until the function has returned all of them.
pub async fn export(
    exporter: &Exporter,
    s3: &aws_sdk_s3::Client,
    mut request: Map<String, Value>,
    out: &mut impl Write,
) -> Result<ExportSummary> {
    let mut summary = ExportSummary::default();
    loop {
        let resume = match exporter.handle(&request.clone().into(), None).await? {
            Answer::Trace(page) => {
                for row in &page.rows {
                    serde_json::to_writer(&mut *out, row)?;
                    out.write_all(b"\n")?;
                    summary.rows += 1;
                }
                summary.left_out += page.left_out;
                page.resume
            }
            Answer::Day(run) => {
                if run.resume.is_none() {
                    copy(s3, &run.files, out).await?;
                }
                summary.rows = run.rows;
                summary.left_out = run.left_out;
                summary.manifest = run.manifest;
                run.resume
            }
            Answer::Training(_) => anyhow::bail!("the request is for training data"),
        };
        out.flush()?;
        let Some(resume) = resume else {
            return Ok(summary);
        };
        request.insert("resume".to_owned(), resume.into());
    }
}

/// Writes training data into the bucket; repeats the invocation until the export is complete.
pub async fn training(exporter: &Exporter, mut request: Map<String, Value>) -> Result<TrainingSet> {
    loop {
        let response = exporter.handle(&request.clone().into(), None).await?;
        let Answer::Training(run) = response else {
            anyhow::bail!("the request is not for training data");
        };
        let Some(resume) = run.resume else {
            return Ok(run);
        };
        request.insert("resume".to_owned(), resume.into());
    }
}

/// Writes the content of objects, given as S3 URIs.
pub async fn copy(s3: &aws_sdk_s3::Client, files: &[String], out: &mut impl Write) -> Result<()> {
    for file in files {
        let (bucket, key) = file
            .strip_prefix("s3://")
            .and_then(|rest| rest.split_once('/'))
            .with_context(|| format!("{file} is not an S3 URI"))?;
        let found = s3.get_object().bucket(bucket).key(key).send().await;
        let mut body = found.with_context(|| format!("cannot read {file}"))?.body;
        while let Some(bytes) = body.next().await {
            out.write_all(&bytes?)?;
        }
    }
    Ok(())
}
