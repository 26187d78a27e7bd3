"""Computes what a million operations cost, from the cost card of docs/reference/data-model.md and AWS's prices.

`python3 infra/ci/costs.py` prints the tables of docs/performance.md. `--check` fails if the page differs, `--write`
updates it.
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

# US dollars, us-east-1, on demand, arm64, without free tiers; November 2026.
WRITE = 0.625  # a million write request units
READ = 0.125  # a million read request units
HTTP_API = 1.00  # a million requests of up to 512 KB
LAMBDA = 0.20  # a million invocations
LAMBDA_GB_S = 13.3334  # a million GB-seconds, in dollars
SQS = 0.40  # a million requests
PIPE = 0.40  # a million requests of up to 64 KB, after the filter
SNS = 0.50  # a million publishes of up to 64 KB; deliveries to SQS are free
WEBSOCKET = 1.00  # a million messages of up to 32 KB, in either direction
CONNECTION = 0.25  # a million minutes of connections

GB = 0.25  # memory of a function
MONTH = 30 * 24 * 60  # minutes
# Of the live feed, in minutes: docs/reference/live-feed.md#limits, and the longest delay of a message in SQS.
DURATION, MAX_DELAY = 118, 15
PING_EVERY = 2  # minutes, as clients/web/hearback-live.js and docs/how-to/follow_feed.py do


def card():
    """The rows of the cost card whose units are numbers: operation, read units, write units."""
    page = (DOCS / "reference" / "data-model.md").read_text()
    table = page.split("| operation | calls |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        operation, _, reads, writes = [cell.strip() for cell in line.strip("|").split("|")]
        number = re.compile(r"\d*\.?\d*")
        if number.fullmatch(reads) and number.fullmatch(writes):
            yield operation, float(reads or 0), float(writes or 0)


def table(*operations):
    """What a million of each of these operations cost in the table, in dollars."""
    costs = {operation: reads * READ + writes * WRITE for operation, reads, writes in card()}
    return sum(costs[operation] for operation in operations)


def invocation(milliseconds):
    """What a million invocations cost, in dollars."""
    return LAMBDA + milliseconds / 1000 * GB * LAMBDA_GB_S


def units():
    rows = ["| operation | read units | write units | dollars a million |", "|---|---|---|---|"]
    for operation, reads, writes in card():
        dollars = reads * READ + writes * WRITE
        if not operation.startswith("…"):
            rows.append(f"| {operation} | {reads:g} | {writes:g} | {dollars:.2f} |")
    return rows


def event(way, requests, batch, milliseconds):
    """The cost of a million events from the request to the published messages, in dollars, by part."""
    parts = {
        "HTTP API": HTTP_API / batch if way == "request" else 0,
        "SQS on the way in": 0 if way == "request" else 3 * SQS / batch,
        "Lambda: accept": requests * LAMBDA + milliseconds / 1000 / batch * GB * LAMBDA_GB_S,
        "table": WRITE + table("signal generator: ten events of one user in one batch") / 10,
        "pipe and queue to the generator": PIPE + 3 * SQS / 10,
        "Lambda: process": invocation(50) / 10,
        "pipe, enrichment and topic": PIPE + LAMBDA / 2 + SNS,
        # Received and deleted ten at once.
        "queue of insights": 2 * SQS / 10,
    }
    return parts


def ways():
    ways = [
        ("one event per request", event("request", 1, 1, 10)),
        ("100 events per request", event("request", 0.01, 100, 300)),
        ("100 events per message of the ingest queue", event("queue", 0.001, 100, 300)),
    ]
    return in_parts("", ways)


def in_parts(title, columns):
    """A table of costs by part, with their sums."""
    names = list(columns[0][1])
    head = " | ".join([f"| {title}".rstrip(), *(column for column, _ in columns)])
    rows = [f"{head} |", "|---|" + "---|" * len(columns)]
    for name in names:
        rows.append(f"| {name} | " + " | ".join(f"{parts[name]:.2f}" for _, parts in columns) + " |")
    rows.append("| all | " + " | ".join(f"{sum(parts.values()):.2f}" for _, parts in columns) + " |")
    return rows


def listeners():
    """What the live feed costs for a million events, by the events' listeners."""

    def parts(woken, *checks):
        # A check is a message that the connection sends itself. Messages are received and deleted ten at once.
        messages = 1 + len(checks)
        return {
            "queue": len(checks) * SQS + messages * 2 * SQS / 10,
            "Lambda: fan-out": messages * invocation(50) / 10,
            "table": table(woken, *checks),
            "WebSocket API": len(checks) * WEBSOCKET,
        }

    without = parts("live feed: an event without a listener")
    own = parts(
        "live feed: an event with one listener, of its own events",
        "live feed: read one's own events again, with nothing new",
    )
    tenant = parts(
        "live feed: an event with one listener, of the tenant's events, with 4 shards of a project's day",
        "live feed: read the tenant's events again, with nothing new, with 4 shards of a project's day",
    )
    columns = [("no listener", without), ("one, of its own events", own), ("one, of the tenant's events", tenant)]
    return in_parts("", columns)


def connections():
    """What a thousand connections cost that are open for a month and receive nothing."""
    # In millions.
    minutes = 1000 * MONTH / 1e6
    pings = minutes / PING_EVERY
    ends = DURATION // MAX_DELAY + 1
    subscribe = "live feed: subscribe to one's own events"
    again = "live feed: read one's own events again, with nothing new"
    connection = (
        # A ticket; connect, subscribe and disconnect.
        HTTP_API
        + 4 * invocation(10)
        # `subscribe` and `subscribed`.
        + 2 * WEBSOCKET
        + table("live feed: a ticket", "live feed: connect", subscribe, again, again, "live feed: disconnect")
        # Its messages to itself: two reads, which one request sends, and one every 15 minutes until its end.
        + (1 + ends) * SQS
        + (2 + ends) * (2 * SQS + invocation(50)) / 10
        + ends * READ
    )
    parts = {
        "connection minutes": minutes * CONNECTION,
        f"a `ping` every {PING_EVERY} minutes, its `pong` and its invocation": pings * (2 * WEBSOCKET + invocation(10)),
        f"a new connection every {DURATION} minutes": minutes / DURATION * connection,
    }
    return in_parts("1,000 connections for a month", [("dollars", parts)])


def main():
    tables = {"units": units(), "ways": ways(), "listeners": listeners(), "connections": connections()}
    path = DOCS / "performance.md"
    page = current = path.read_text()
    for name, rows in tables.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = between.sub(lambda match: match[1] + "\n".join(rows) + "\n" + match[2], page)
    if "--write" in sys.argv:
        path.write_text(page)
    elif "--check" in sys.argv:
        if page != current:
            sys.exit("docs/performance.md is outdated; run infra/ci/costs.py --write")
    else:
        for rows in tables.values():
            print("\n".join(rows), end="\n\n")


main()
