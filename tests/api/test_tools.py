"""AWS's SDK for Python works with the printed keys, and is rejected with others."""

import io
import os
import pathlib
import urllib.error
import urllib.request

import pytest
from botocore.exceptions import ClientError

from bundle import Bundle, default_command

TABLE = "hearback"
BUCKET = "hearback-data"


@pytest.fixture
def bundle(tmp_path):
    command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
    bundle = Bundle(command, tmp_path)
    yield bundle
    bundle.stop()


def test_the_printed_keys_give_access_to_table_queues_and_bucket(bundle):
    dynamodb, sqs, s3 = (bundle.tool(service) for service in ("dynamodb", "sqs", "s3"))
    item = {"PK": {"S": "of a tool"}, "SK": {"S": "ä 1"}, "n": {"N": "1.50"}, "b": {"B": b"\0\1"}}
    dynamodb.put_item(TableName=TABLE, Item=item)
    key = {name: item[name] for name in ("PK", "SK")}
    assert dynamodb.get_item(TableName=TABLE, Key=key)["Item"]["b"] == {"B": b"\0\1"}
    pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE, PaginationConfig={"PageSize": 1})
    assert sum(page["Count"] for page in pages) == 1
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException) as rejected:
        condition = {"ConditionExpression": "attribute_not_exists(PK)"}
        dynamodb.put_item(TableName=TABLE, Item=item, ReturnValuesOnConditionCheckFailure="ALL_OLD", **condition)
    assert rejected.value.response["Item"]["SK"] == {"S": "ä 1"}
    update = {"Delete": {"TableName": TABLE, "Key": key}}
    dynamodb.transact_write_items(TransactItems=[update])
    assert "Item" not in dynamodb.get_item(TableName=TABLE, Key=key)
    assert TABLE in dynamodb.list_tables()["TableNames"]

    queue = sqs.create_queue(QueueName="of-a-tool")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="ä", MessageAttributes={
        "a": {"DataType": "String", "StringValue": "b"}})
    received = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=["All"])["Messages"]
    assert [message["Body"] for message in received] == ["ä"]

    s3.put_object(Bucket=BUCKET, Key="of a tool/ä+b.txt", Body=b"text")
    assert s3.get_object(Bucket=BUCKET, Key="of a tool/ä+b.txt")["Body"].read() == b"text"
    s3.upload_fileobj(io.BytesIO(bytes(9_000_000)), BUCKET, "of a tool/large")
    assert s3.head_object(Bucket=BUCKET, Key="of a tool/large")["ContentLength"] == 9_000_000
    url = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "of a tool/ä+b.txt"})
    with urllib.request.urlopen(url) as response:
        assert response.read() == b"text"


def test_other_keys_give_no_access(bundle):
    keys = bundle.variables["AWS_ACCESS_KEY_ID"]
    for pair in (("local", "local"), (keys, "another")):
        calls = (
            bundle.tool("dynamodb", *pair).list_tables,
            bundle.tool("sqs", *pair).list_queues,
            bundle.tool("s3", *pair).list_buckets,
        )
        for call in calls:
            with pytest.raises(ClientError) as rejected:
                call()
            assert rejected.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_a_request_without_a_signature_is_rejected(bundle):
    for port in bundle.ports[1:]:
        with pytest.raises(urllib.error.HTTPError) as rejected:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        assert rejected.value.code == 403
