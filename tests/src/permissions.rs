//! What a function asks of AWS, as IAM names it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::query::QueryInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_s3::operation::delete_object::DeleteObjectInput;
use aws_sdk_s3::operation::get_object::GetObjectInput;
use aws_sdk_s3::operation::head_object::HeadObjectInput;
use aws_smithy_runtime_api::client::interceptors::context::Input;
use aws_smithy_runtime_api::client::orchestrator::Metadata;

/// An action, and the index that it is on, if it is on one.
pub type Permission = (String, Option<String>);

/// Notes every call of the clients that it observes.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<BTreeSet<Permission>>>);

impl Recorder {
    /// What was asked for since the last time.
    pub fn take(&self) -> BTreeSet<Permission> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Recorder {
    /// A transaction needs what each of its writes does.
    fn transaction(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
    ) -> Result<(), BoxError> {
        let input = context.input().downcast_ref::<TransactWriteItemsInput>();
        let actions = input.unwrap().transact_items().iter().flat_map(|item| {
            let put = item.put().map(|_| "PutItem");
            let update = item.update().map(|_| "UpdateItem");
            let delete = item.delete().map(|_| "DeleteItem");
            [put, update, delete].into_iter().flatten()
        });
        let permissions = actions.map(|action| (format!("dynamodb:{action}"), None));
        self.0.lock().unwrap().extend(permissions);
        Ok(())
    }
}

impl Intercept for Recorder {
    fn name(&self) -> &'static str {
        "Recorder"
    }

    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let call = config.load::<Metadata>().expect("a call has a name");
        let service = call.service().to_lowercase();
        let index = context
            .input()
            .downcast_ref::<QueryInput>()
            .and_then(|query| query.index_name.clone());
        // IAM has other names for some calls.
        let actions: &[&str] = match call.name() {
            "GetObject" | "HeadObject" if version(context.input()).is_some() => {
                &["GetObjectVersion"]
            }
            "HeadObject" => &["GetObject"],
            "ListObjectsV2" => &["ListBucket"],
            "CreateMultipartUpload" | "UploadPart" | "CompleteMultipartUpload" => &["PutObject"],
            "DeleteObject" if version(context.input()).is_some() => &["DeleteObjectVersion"],
            "DeleteObjects" => &["DeleteObject", "DeleteObjectVersion"],
            "ListObjectVersions" => &["ListBucketVersions"],
            "TransactWriteItems" => return self.transaction(context),
            name => &[name],
        };
        let permissions =
            (actions.iter()).map(|action| (format!("{service}:{action}"), index.clone()));
        self.0.lock().unwrap().extend(permissions);
        Ok(())
    }
}

/// Which version of a file a call names.
pub fn version(input: &Input) -> Option<&str> {
    let delete = input.downcast_ref::<DeleteObjectInput>();
    let get = input.downcast_ref::<GetObjectInput>();
    let head = input.downcast_ref::<HeadObjectInput>();
    (delete.and_then(|call| call.version_id.as_deref()))
        .or_else(|| get.and_then(|call| call.version_id.as_deref()))
        .or_else(|| head.and_then(|call| call.version_id.as_deref()))
}
