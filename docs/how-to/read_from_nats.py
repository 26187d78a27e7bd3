"""Prints the learning signals of the stream HEARBACK, a line of JSON each. docs/how-to/publish-to-nats.md explains it.

    pip install nats-py
    python3 docs/how-to/read_from_nats.py [count]

Needs Python 3.10 or newer.
"""

import asyncio
import os
import sys

import nats

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")


async def read(left):
    async with await nats.connect(URL) as connection:
        signals = await connection.jetstream().pull_subscribe("learning.signals.>", "training", "HEARBACK")
        while left != 0:
            try:
                messages = await signals.fetch(min(left, 100) if left > 0 else 100, timeout=5)
            except nats.errors.TimeoutError:
                continue
            for message in messages:
                print(message.data.decode(), flush=True)
                # Only now: the server delivers again what was not acknowledged within 30 seconds.
                await message.ack_sync()
                left -= 1


if __name__ == "__main__":
    asyncio.run(read(int(sys.argv[1]) if len(sys.argv) > 1 else -1))
