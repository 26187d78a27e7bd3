//! What others do between two calls of a worker: races that come out the same each time.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

type Deeds = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Has something done before the first call of a kind is sent. Needs a runtime of several threads.
#[derive(Clone)]
pub struct Meanwhile {
    call: &'static str,
    deeds: Arc<Mutex<Option<Deeds>>>,
}

impl Meanwhile {
    /// Has these done before the first call of this name.
    pub fn before(call: &'static str, deeds: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            call,
            deeds: Arc::new(Mutex::new(Some(Box::pin(deeds)))),
        }
    }

    /// Whether they are done.
    pub fn is_done(&self) -> bool {
        self.deeds.lock().unwrap().is_none()
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
            && let Some(deeds) = self.deeds.lock().unwrap().take()
        {
            block_in_place(|| Handle::current().block_on(deeds));
        }
        Ok(())
    }
}
