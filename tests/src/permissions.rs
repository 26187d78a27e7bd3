//! The permissions that a function needs, as IAM names them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::query::QueryInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_s3::operation::complete_multipart_upload::CompleteMultipartUploadInput;
use aws_sdk_s3::operation::create_multipart_upload::CreateMultipartUploadInput;
use aws_sdk_s3::operation::delete_object::DeleteObjectInput;
use aws_sdk_s3::operation::delete_objects::DeleteObjectsInput;
use aws_sdk_s3::operation::get_object::GetObjectInput;
use aws_sdk_s3::operation::head_object::HeadObjectInput;
use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsInput;
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Input;
use aws_sdk_s3::operation::put_object::PutObjectInput;
use aws_sdk_s3::operation::upload_part::UploadPartInput;
use aws_sdk_sqs::operation::delete_message::DeleteMessageInput;
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesInput;
use aws_sdk_sqs::operation::receive_message::ReceiveMessageInput;
use aws_sdk_sqs::operation::send_message::SendMessageInput;
use aws_smithy_runtime_api::client::interceptors::context::Input;
use aws_smithy_runtime_api::client::orchestrator::Metadata;

/// An action and its resource: the table, an index, the bucket or a key in it, as in the template.
pub type Permission = (String, String);

/// Records the permissions for the calls that it observes.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<BTreeSet<Permission>>>);

impl Recorder {
    /// Returns the permissions since the last call of this method.
    pub fn take(&self) -> BTreeSet<Permission> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Recorder {
    /// A transaction needs the permission for each of its writes.
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
        let table = "${Table.Arn}".to_owned();
        let permissions = actions.map(|action| (format!("dynamodb:{action}"), table.clone()));
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
        let resources = match &*service {
            "dynamodb" => vec![table(context.input())],
            "s3" => objects(context.input()),
            "sqs" => vec![queue(context.input())],
            other => panic!("a call of {other}, with unknown resources"),
        };
        // Some calls have another name in IAM.
        let actions: &[&str] = match call.name() {
            "GetObject" | "HeadObject" if version(context.input()).is_some() => {
                &["GetObjectVersion"]
            }
            "HeadObject" => &["GetObject"],
            "PutObject" if is_tagged(context.input()) => &["PutObject", "PutObjectTagging"],
            "ListObjectsV2" => &["ListBucket"],
            "CreateMultipartUpload" | "UploadPart" | "CompleteMultipartUpload" => &["PutObject"],
            "DeleteObject" if version(context.input()).is_some() => &["DeleteObjectVersion"],
            "DeleteObjects" => &["DeleteObject", "DeleteObjectVersion"],
            "ListObjectVersions" => &["ListBucketVersions"],
            "TransactWriteItems" => return self.transaction(context),
            name => &[name],
        };
        let permissions = resources.iter().flat_map(|resource| {
            let one = |action: &&str| (format!("{service}:{action}"), resource.clone());
            actions.iter().map(one).collect::<Vec<_>>()
        });
        self.0.lock().unwrap().extend(permissions);
        Ok(())
    }
}

/// The table, or the index that a query names.
fn table(input: &Input) -> String {
    let query = input.downcast_ref::<QueryInput>();
    match query.and_then(|query| query.index_name()) {
        Some(index) => format!("${{Table.Arn}}/index/{index}"),
        None => "${Table.Arn}".to_owned(),
    }
}

/// The queue that a call names, as the template names one that it deploys with a parameter only.
fn queue(input: &Input) -> String {
    let read = || input.downcast_ref::<GetQueueAttributesInput>()?.queue_url();
    let receive = || input.downcast_ref::<ReceiveMessageInput>()?.queue_url();
    let send = || input.downcast_ref::<SendMessageInput>()?.queue_url();
    let delete = || input.downcast_ref::<DeleteMessageInput>()?.queue_url();
    let url = read().or_else(receive).or_else(send).or_else(delete);
    let (_, name) = url.and_then(|url| url.rsplit_once("/")).expect("a queue");
    // The name of a stack in tests is `test-` and an id.
    let name = name.splitn(3, '-').nth(2).unwrap_or_default();
    format!(
        "arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:${{AWS::StackName}}-{name}"
    )
}

/// The objects that a call names, or the bucket.
fn objects(input: &Input) -> Vec<String> {
    if let Some(delete) = input.downcast_ref::<DeleteObjectsInput>() {
        let objects = delete.delete().expect("objects to delete").objects().iter();
        return objects.map(|object| at(object.key())).collect();
    }
    let objects = input.downcast_ref::<ListObjectsV2Input>();
    let versions = input.downcast_ref::<ListObjectVersionsInput>();
    if objects.is_some() || versions.is_some() {
        let prefix = objects.and_then(|list| list.prefix());
        let prefix = prefix.or_else(|| versions?.prefix()).unwrap_or_default();
        return vec![format!("${{Bucket.Arn}}?prefix={prefix}")];
    }
    vec![at(key(input).expect("a call with unknown objects"))]
}

fn at(key: &str) -> String {
    format!("${{Bucket.Arn}}/{key}")
}

/// The key that a call names.
fn key(input: &Input) -> Option<&str> {
    let get = || input.downcast_ref::<GetObjectInput>()?.key();
    let head = || input.downcast_ref::<HeadObjectInput>()?.key();
    let put = || input.downcast_ref::<PutObjectInput>()?.key();
    let delete = || input.downcast_ref::<DeleteObjectInput>()?.key();
    let begin = || input.downcast_ref::<CreateMultipartUploadInput>()?.key();
    let part = || input.downcast_ref::<UploadPartInput>()?.key();
    let end = || input.downcast_ref::<CompleteMultipartUploadInput>()?.key();
    get()
        .or_else(head)
        .or_else(put)
        .or_else(delete)
        .or_else(begin)
        .or_else(part)
        .or_else(end)
}

/// Whether a call puts an object with tags.
fn is_tagged(input: &Input) -> bool {
    let put = input.downcast_ref::<PutObjectInput>();
    put.is_some_and(|put| put.tagging.is_some())
}

/// The version of an object that a call names.
pub fn version(input: &Input) -> Option<&str> {
    let delete = input.downcast_ref::<DeleteObjectInput>();
    let get = input.downcast_ref::<GetObjectInput>();
    let head = input.downcast_ref::<HeadObjectInput>();
    (delete.and_then(|call| call.version_id.as_deref()))
        .or_else(|| get.and_then(|call| call.version_id.as_deref()))
        .or_else(|| head.and_then(|call| call.version_id.as_deref()))
}
