"""Pages of other origins cannot access any port of the bundle, not even with a name that resolves to this machine."""

import functools
import http.server
import itertools
import json
import math
import pathlib
import threading
import time
import urllib.parse

import pytest

from bundle import FEED, eventually

# The browser resolves it to this machine (conftest), as in a DNS rebinding attack.
REBOUND = "rebound.example"
BUCKET = "hearback-data"
TABLE = "hearback"
PLANTED = "planted"
# The store counts as settled when nothing changes for this many seconds.
QUIET = 1.2

# Sends every kind of request that a page can send to a port, and returns the responses that it can read.
SEND = """async ({ ports, table, bucket, token }) => {
    const item = { PK: { S: 'planted' }, SK: { S: 'planted' } };
    const calls = [
        ['DynamoDB_20120810.PutItem', { TableName: table, Item: item }],
        ['DynamoDB_20120810.Scan', { TableName: table }],
        ['AmazonSQS.CreateQueue', { QueueName: 'planted' }],
        ['AmazonSQS.ListQueues', {}],
    ];
    const signature = 'AWS4-HMAC-SHA256 Credential=local/20261122/us-east-1/dynamodb/aws4_request, '
        + 'SignedHeaders=host;x-amz-date, Signature=0';
    const read = [];
    const attempt = async (url, options) => {
        try {
            const response = await fetch(url, options);
            const text = await response.text();
            if (response.type !== 'opaque') read.push(`${url} ${response.status} ${text.slice(0, 80)}`);
        } catch {
            // The browser hides the response from the page.
        }
    };
    for (const port of ports) {
        const url = `http://127.0.0.1:${port}`;
        for (const [target, body] of calls) {
            const headers = {
                'content-type': 'application/x-amz-json-1.0', 'x-amz-target': target,
                'x-amz-date': '20261122T080000Z', authorization: signature,
            };
            const method = 'POST';
            await attempt(url, { method, headers, body: JSON.stringify(body) });
            for (const mode of ['cors', 'no-cors']) {
                await attempt(url, { method, mode, body: JSON.stringify(body) });
            }
        }
        for (const path of ['/', `/${bucket}/planted`, `/${bucket}?list-type=2`, '/health', '/openapi.json', '/@connections/planted']) {
            for (const mode of ['cors', 'no-cors']) {
                await attempt(url + path, { mode });
                await attempt(url + path, { mode, method: 'POST', body: 'planted' });
            }
            await attempt(url + path, { method: 'PUT', body: 'planted' });
            await attempt(url + path, { method: 'DELETE' });
        }
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
        await attempt(`${url}/v1/preferences/planted`, { headers });
    }
    return read;
}"""

# Submits a form with these fields and a file to a URL, and waits for what is shown then.
SUBMIT = """forms => Promise.all(forms.map(({ url, type, fields }) => new Promise(resolve => {
    const frame = document.createElement('iframe');
    frame.name = `frame-${Math.random()}`;
    const form = document.createElement('form');
    Object.assign(form, { action: url, method: 'post', enctype: type, target: frame.name });
    for (const [name, value] of Object.entries(fields)) {
        const field = document.createElement('textarea');
        Object.assign(field, { name, value });
        form.append(field);
    }
    if (type === 'multipart/form-data') {
        const file = document.createElement('input');
        Object.assign(file, { type: 'file', name: 'file' });
        const planted = new DataTransfer();
        planted.items.add(new File(['planted'], 'planted'));
        file.files = planted.files;
        form.append(file);
    }
    document.body.append(frame, form);
    frame.addEventListener('load', resolve);
    form.submit();
})))"""


# Opens a WebSocket at each URL, and returns the URLs that were opened.
CONNECT = """async urls => {
    const attempts = urls.map(url => new Promise(resolve => {
        const socket = new WebSocket(url);
        socket.addEventListener('open', () => resolve(url));
        socket.addEventListener('close', () => resolve(null));
    }));
    return (await Promise.all(attempts)).filter(url => url);
}"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def other_origin(tmp_path):
    """A site on another port of this machine, with an empty page."""
    (tmp_path / "index.html").write_text("<!doctype html><title>Another site</title>")
    handler = functools.partial(Silent, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def read_store(bundle, user):
    """Returns a function that reads table, queues and bucket as a set, once nothing changes any more."""
    user.register("stored")
    dynamodb, sqs, s3 = (bundle.tool(service) for service in ("dynamodb", "sqs", "s3"))
    # What expires in the next hour may be deleted while a test runs.
    lasting = time.time() + 3600

    def read():
        rows = dynamodb.scan(TableName=TABLE, ConsistentRead=True)["Items"]
        queues = sqs.list_queues()["QueueUrls"]
        objects = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
        assert rows and queues and objects
        return {
            *(json.dumps(row, sort_keys=True, default=str) for row in rows if expiry(row) > lasting),
            *queues,
            *((each["Key"], each["Size"], each["LastModified"]) for each in objects),
        }

    def is_settled():
        before = read()
        rows = [json.loads(each) for each in before if isinstance(each, str) and each.startswith("{")]
        kinds = [row["SK"]["S"] for row in rows]
        if kinds.count("EVENT") != kinds.count("RESULT"):
            return False
        time.sleep(QUIET)
        return read() == before

    eventually(is_settled, True)
    return read


def expiry(row):
    return float(row["expires_at"]["N"]) if "expires_at" in row else math.inf


@pytest.fixture
def page(new_context):
    return new_context().new_page()


def test_a_page_of_another_origin_reads_and_writes_nothing(bundle, user, page, other_origin, read_store):
    before = read_store()
    page.goto(other_origin)
    reach = {"ports": bundle.all_ports, "table": TABLE, "bucket": BUCKET, "token": user.token}
    assert page.evaluate(SEND, reach) == []
    assert not read_store() ^ before


def test_a_form_of_another_origin_writes_nothing(bundle, page, other_origin, read_store):
    """Not even if it is signed with the folder's keys, or with fixed keys."""
    before = read_store()
    page.goto(other_origin)
    form = {"Bucket": BUCKET, "Key": PLANTED}
    signed = bundle.tool("s3").generate_presigned_post(**form)["fields"]
    fixed = bundle.tool("s3", "local", "local").generate_presigned_post(**form)["fields"]
    body = json.dumps({"TableName": TABLE, "Item": {"PK": {"S": PLANTED}, "SK": {"S": PLANTED}}})
    paths = ("", BUCKET, f"{BUCKET}/{PLANTED}", "v1/feedback/submit")
    kinds = ("multipart/form-data", "application/x-www-form-urlencoded", "text/plain")
    responses = []
    page.on("response", lambda response: responses.append(response))
    for port in bundle.all_ports:
        for fields in ({"key": PLANTED}, signed, fixed, {body: ""}):
            forms = [
                {"url": f"http://127.0.0.1:{port}/{path}", "type": kind, "fields": fields}
                for path, kind in itertools.product(paths, kinds)
            ]
            page.evaluate(SUBMIT, forms)
            assert sorted(each.url for each in responses) == sorted(each["url"] for each in forms)
            assert not any(each.ok for each in responses), fields
            responses.clear()
    assert not read_store() ^ before


def sockets_at(host, ports):
    """The URLs of the live feed at these ports, without a ticket and with tickets that nobody was given."""
    tickets = ("", "?ticket=", "?ticket=planted", f"?ticket={'A' * 43}")
    return [f"ws://{host}:{port}{FEED}{ticket}" for port in ports for ticket in tickets]


def test_a_page_of_another_origin_opens_no_socket_without_a_ticket(bundle, user, page, other_origin):
    page.goto(other_origin)
    assert page.evaluate(CONNECT, sockets_at("127.0.0.1", bundle.all_ports)) == []
    # The port is the right one: with a ticket it opens.
    given = user.call("POST", f"{FEED}/ticket")
    url = f"{given['url']}?ticket={urllib.parse.quote(given['ticket'])}"
    assert page.evaluate(CONNECT, [url]) == [url]


def test_a_name_that_resolves_to_this_machine_is_rejected(bundle, user, page, read_store):
    before = read_store()
    ports = bundle.all_ports
    assert len(ports) == 5 or not pathlib.Path("/proc").exists(), "there is one more port, for frames to WebSockets"
    for port in ports:
        status = 421 if port == bundle.port else 403
        url = f"http://{REBOUND}:{port}/"
        # The attacker's server sends the page; then the name resolves to this machine.
        page.route(url, lambda route: route.fulfill(content_type="text/html", body="<!doctype html>"))
        page.goto(url)
        page.unroute(url)
        # Now the page and the port have the same origin.
        outcomes = page.evaluate(
            """async ({ token, bucket }) => {
                const headers = { authorization: `Bearer ${token}`, 'x-amz-target': 'DynamoDB_20120810.ListTables',
                    'content-type': 'application/x-amz-json-1.0' };
                const paths = ['/', '/docs/', '/demo', '/health', '/openapi.json', '/v1/preferences/ada', '/@connections/planted',
                    `/${bucket}?list-type=2`, `/${bucket}/planted`];
                const responses = paths.flatMap(path => [
                    fetch(path),
                    fetch(path, { headers }),
                    ...['POST', 'PUT', 'DELETE'].map(method => fetch(path, { method, headers, body: '{}' })),
                ]);
                const settled = await Promise.allSettled(responses);
                return settled.map(result => result.value?.status ?? String(result.reason));
            }""",
            {"token": user.token, "bucket": BUCKET},
        )
        assert set(outcomes) == {status}, (port, outcomes)
        assert page.evaluate(CONNECT, sockets_at(REBOUND, [port])) == []
    assert not read_store() ^ before


def test_no_page_of_another_origin_can_frame_the_gateways_pages(bundle, page, other_origin):
    page.goto(other_origin)
    for path in ("/docs/", "/demo", "/health", "/openapi.json"):
        framed = page.evaluate(
            """url => new Promise(resolve => {
                const frame = document.createElement('iframe');
                frame.src = url;
                frame.addEventListener('load', () => resolve(true));
                document.body.append(frame);
            })""",
            bundle.url + path,
        )
        assert framed
        urls = [frame.url for frame in page.frames[1:]]
        assert bundle.url + path not in urls, urls


def test_the_api_page_works_under_its_content_security_policy(bundle, user, page):
    errors = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    hosts = []
    page.on("request", lambda request: hosts.append(urllib.parse.urlsplit(request.url).netloc))
    page.goto(f"{bundle.url}/docs")
    page.get_by_role("button", name="Authorize").first.click()
    page.get_by_role("textbox", name="auth-bearer-value").fill(user.token)
    page.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close").click()
    operation = page.locator(".opblock").filter(has_text="/v1/feedback/detect")
    operation.locator(".opblock-summary").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    status = operation.locator(".live-responses-table .response > .response-col_status")
    eventually(lambda: status.inner_text()[:3], "200")
    assert errors == []
    assert set(hosts) - {""} == {urllib.parse.urlsplit(bundle.url).netloc}
