//! The state of the handlers.

use std::path::Path;
use std::sync::Arc;

use axum::extract::FromRef;
use hearback_detection::Detector;
use hearback_domain::events::retention::Retention;
use hearback_lambda::settings::{PHRASES, TURN_RETENTION_DAYS, setting};
use hearback_lambda::{App, BadSetting, FromEnv, WithBlobs};

/// The table, the bucket and the detector.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Table and bucket.
    pub app: WithBlobs,
    /// Detects feedback in messages.
    pub detector: Arc<Detector>,
    /// How long turns are kept.
    pub retention: Retention,
}

impl Registry {
    /// A registry on this table and bucket, which keeps turns for the default time.
    #[must_use]
    pub fn new(app: WithBlobs, detector: Arc<Detector>) -> Self {
        Self {
            app,
            detector,
            retention: Retention::default(),
        }
    }

    /// Sets how long turns are kept.
    #[must_use]
    pub fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }
}

impl From<WithBlobs> for Registry {
    /// With the built-in phrases.
    fn from(app: WithBlobs) -> Self {
        Self::new(app, Arc::new(Detector::embedded()))
    }
}

impl FromEnv for Registry {
    fn from_env() -> Result<Self, BadSetting> {
        let app = WithBlobs::from_env()?;
        let retention = retention()?;
        let Ok(folder) = setting(PHRASES) else {
            return Ok(Self::from(app).keeping(retention));
        };
        let detector = detector(Path::new(&folder));
        let detector = detector.map_err(|reason| BadSetting::Unusable(PHRASES, reason))?;
        Ok(Self::new(app, Arc::new(detector)).keeping(retention))
    }
}

fn retention() -> Result<Retention, BadSetting> {
    let Ok(days) = setting(TURN_RETENTION_DAYS) else {
        return Ok(Retention::default());
    };
    let days = days
        .parse()
        .ok()
        .filter(|days| i64::from(*days) <= Retention::MAX_DAYS);
    days.map(Retention::days).ok_or_else(|| {
        let expected = format!("must be a number from 0 to {}", Retention::MAX_DAYS);
        BadSetting::Unusable(TURN_RETENTION_DAYS, expected)
    })
}

/// A detector with the built-in phrases and those of a folder's `.toml` files; or all errors of these files.
pub fn detector(folder: &Path) -> Result<Detector, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = std::fs::read_to_string(&path).map_err(unreadable)?;
            files.push((path.display().to_string(), text));
        }
    }
    // The result must not depend on the order of the directory.
    files.sort();
    let files = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    Detector::with_additions(files).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        errors.join("; ")
    })
}

impl FromRef<Registry> for App {
    fn from_ref(registry: &Registry) -> Self {
        registry.app.app.clone()
    }
}
