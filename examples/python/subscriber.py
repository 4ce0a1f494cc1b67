"""Keeps the history of all jobs in SQLite, from the events that Tallyhook publishes.

Each event takes effect once, and those of one job in their order: whatever happens to the connection, the broker,
the database or this program.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import time
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPError

EXCHANGE = "conversion.events"
BINDING = "job.#"
QUEUE = os.environ["QUEUE"]
PREFETCH = 50  # events that the broker sends ahead; they are handled one after the other
TYPES = {"conversion.job.completed", "conversion.job.failed", "conversion.job.progress"}
ATTEMPTS = 4  # at an event whose handling fails; then it goes to the dead-letter queue
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
LOOK_S = 0.2  # how often it looks whether it should stop
AWAY = {  # what SQLite says when it is not the event's fault
    "database is locked", "unable to open database file", "disk I/O error", "database or disk is full",
}
TABLES = """
    create table if not exists handled_events (
      id text primary key, handled_at text not null default current_timestamp);
    create table if not exists job_history (
      position integer primary key, source text not null, job_id text not null, status text not null,
      progress integer, cost_cents integer, happened_at text not null);
"""

log = logging.getLogger("subscriber")
stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # what it logs it also raises
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    database = sqlite3.connect(os.environ["DATABASE_FILE"], timeout=5, isolation_level=None)
    database.executescript("pragma journal_mode = wal; pragma synchronous = full;" + TABLES)
    failures = 0
    while not stopping:
        started = time.monotonic()
        try:
            consume(database)
        except (AMQPError, OSError) as error:
            log.warning("connecting again, since the connection was lost: %r", error)
            if time.monotonic() - started > LONGEST_WAIT_S:
                failures = 0
            pause(failures)
            failures += 1
    log.info("stopped")


def consume(database: sqlite3.Connection) -> None:
    """Handles events until it should stop or the connection is lost. What is not acknowledged then comes again."""
    connection = BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
    try:
        channel = connection.channel()
        declare(channel)
        log.info("waiting for events in %s", QUEUE)
        for method, _, body in channel.consume(QUEUE, inactivity_timeout=LOOK_S):
            if stopping:
                # When this is answered, the broker has all acknowledgements, and the program may end. It closes
                # nothing: pika's close() first cancels the consumer, and a second one would then start before the
                # events that this one still holds are back.
                channel.queue_declare(QUEUE, passive=True)
                return
            if method is not None:
                settle(channel, method.delivery_tag, body, database)
        raise AMQPError("the broker ended the consumer")
    except AMQPError:
        if connection.is_open:  # only the channel is lost
            connection.close()
        raise


def declare(channel: BlockingChannel) -> None:
    dead = f"{QUEUE}.dead"
    channel.exchange_declare(dead, "fanout", durable=True)
    dead_arguments = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
    channel.queue_declare(dead, durable=True, arguments=dead_arguments)
    channel.queue_bind(dead, dead)
    arguments = {
        "x-queue-type": "quorum",
        "x-single-active-consumer": True,  # a second program waits until the first is gone: so the order holds
        "x-delivery-limit": 20,  # for an event that ends this program; a lost connection counts, too
        "x-dead-letter-exchange": dead,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",  # at-least-once asks for it
    }
    channel.queue_declare(QUEUE, durable=True, arguments=arguments)
    channel.queue_bind(QUEUE, EXCHANGE, BINDING)
    channel.basic_qos(prefetch_count=PREFETCH)


def settle(channel: BlockingChannel, tag: int, body: bytes, database: sqlite3.Connection) -> None:
    """Acknowledges an event after its effect is committed. Never requeues one: that would change the order."""
    try:
        row = parse(body)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        log.error("rejected, since it is no event: %r", error)
        channel.basic_reject(tag, requeue=False)
        return
    if row is None:
        channel.basic_ack(tag)
        return
    failures = waits = 0
    while not stopping:
        try:
            handle(database, row)
        except Exception as error:
            log.warning("%s: %r", row["id"], error)
            if str(error) not in AWAY:
                failures += 1
        else:
            channel.basic_ack(tag)
            return
        if failures == ATTEMPTS:
            channel.basic_reject(tag, requeue=False)  # to the dead-letter queue
            return
        pause(waits, channel.connection)
        waits += 1


def parse(body: bytes) -> dict[str, Any] | None:
    """Returns what handle() writes; None for a new type of event, or another version of the same."""
    # int() refuses numbers of more than 4,300 digits. An unknown field may have one.
    event = json.loads(body, parse_int=lambda digits: int(digits) if len(digits) < 20 else digits)
    if not event["dataschema"].endswith(":1") or event["type"] not in TYPES:
        return None
    data = event["data"]
    return {
        **{name: event[name] for name in ("id", "source", "subject", "time")},
        "status": data["status"],
        "progress": data["progress_percentage"],
        "cost": data["cost_cents"] if data["status"] == "completed" else None,
    }


def handle(database: sqlite3.Connection, row: dict[str, Any]) -> None:
    """Commits the effect and the event's id in one transaction, so that a copy has no effect."""
    with database:  # commits, or rolls back after an exception
        database.execute("begin immediate")
        insert_id = "insert into handled_events (id) values (:id) on conflict do nothing"
        if database.execute(insert_id, row).rowcount == 0:
            return
        database.execute(
            """insert into job_history (source, job_id, status, progress, cost_cents, happened_at)
               values (:source, :subject, :status, :progress, :cost, :time)""",
            row,
        )


def pause(waits: int, connection: BlockingConnection | None = None) -> None:
    """Each wait is twice as long as the one before. A stop ends it. The connection's heartbeats go on meanwhile."""
    end = time.monotonic() + min(FIRST_WAIT_S * 2 ** min(waits, 10), LONGEST_WAIT_S)
    while not stopping and time.monotonic() < end:
        if connection is None:
            time.sleep(LOOK_S)
        else:
            connection.process_data_events(time_limit=LOOK_S)


if __name__ == "__main__":
    main()
