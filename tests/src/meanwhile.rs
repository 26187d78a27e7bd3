//! Reproducible races: an action of another worker between two calls of a worker.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

type Action = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs an action before the first call with a name is sent. Needs a multi-threaded runtime.
#[derive(Clone)]
pub struct Meanwhile {
    call: &'static str,
    action: Arc<Mutex<Option<Action>>>,
}

impl Meanwhile {
    /// Runs `action` before the first call with this name.
    pub fn before(call: &'static str, action: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            call,
            action: Arc::new(Mutex::new(Some(Box::pin(action)))),
        }
    }

    /// Whether the action is done.
    pub fn is_done(&self) -> bool {
        self.action.lock().unwrap().is_none()
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meanwhile({})", self.call)
    }
}

impl Intercept for Meanwhile {
    fn name(&self) -> &'static str {
        "Meanwhile"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let call = config.load::<Metadata>().expect("a call has a name");
        if call.name() == self.call
            && let Some(action) = self.action.lock().unwrap().take()
        {
            block_in_place(|| Handle::current().block_on(action));
        }
        Ok(())
    }
}
