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


def card():
    """The rows of the cost card whose units are numbers: operation, read units, write units."""
    page = (DOCS / "reference" / "data-model.md").read_text()
    table = page.split("| operation | calls |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        operation, _, reads, writes = [cell.strip() for cell in line.strip("|").split("|")]
        number = re.compile(r"\d*\.?\d*")
        if number.fullmatch(reads) and number.fullmatch(writes):
            yield operation, float(reads or 0), float(writes or 0)


def units():
    rows = ["| operation | read units | write units | dollars a million |", "|---|---|---|---|"]
    for operation, reads, writes in card():
        dollars = reads * READ + writes * WRITE
        if not operation.startswith("…"):
            rows.append(f"| {operation} | {reads:g} | {writes:g} | {dollars:.2f} |")
    return rows


def event(way, requests, batch, milliseconds):
    """The cost of a million events from the request to the published messages, in dollars, by part."""
    gb = 0.25
    generate = dict((operation, (reads, writes)) for operation, reads, writes in card())
    reads, writes = generate["signal generator: ten events of one user in one batch"]
    parts = {
        "HTTP API": HTTP_API / batch if way == "request" else 0,
        "SQS on the way in": 0 if way == "request" else 3 * SQS / batch,
        "Lambda: accept": requests * LAMBDA + milliseconds / 1000 / batch * gb * LAMBDA_GB_S,
        "table": WRITE + (reads * READ + writes * WRITE) / 10,
        "pipe and queue to the generator": PIPE + 3 * SQS / 10,
        "Lambda: process": LAMBDA / 10 + 0.050 / 10 * gb * LAMBDA_GB_S,
        "pipe, enrichment and topic": PIPE + LAMBDA / 2 + SNS,
    }
    return parts


def ways():
    ways = [
        ("one event a request", event("request", 1, 1, 10)),
        ("100 events a request", event("request", 0.01, 100, 300)),
        ("100 events a message of the ingest queue", event("queue", 0.001, 100, 300)),
    ]
    names = list(ways[0][1])
    rows = ["| | " + " | ".join(way for way, _ in ways) + " |", "|---|" + "---|" * len(ways)]
    for name in names:
        rows.append(f"| {name} | " + " | ".join(f"{parts[name]:.2f}" for _, parts in ways) + " |")
    rows.append("| all | " + " | ".join(f"{sum(parts.values()):.2f}" for _, parts in ways) + " |")
    return rows


def main():
    tables = {"units": units(), "ways": ways()}
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
