"""The embedded broker and channel layer, under contention and between processes, as kombu and Channels use
them.

Processes are started fresh (spawn), as a web server and a worker are.
"""

import asyncio
import itertools
import multiprocessing
import multiprocessing.process
from collections import Counter
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection, Queue

from explorer.embedded.layer import SqliteChannelLayer
from explorer.embedded.transport import register

PRODUCERS = 2
CONSUMERS = 2
MESSAGES_PER_PRODUCER = 4_000
STOP_AFTER_IDLE_S = 1.5

pytestmark = pytest.mark.embedded
spawn = multiprocessing.get_context("spawn")


def broker(path: str) -> Connection:
    register()
    return Connection("embedded://", transport_options={"path": path, "polling_interval": 0.005})


def produce(path: str, producer: int) -> None:
    with broker(path) as connection, connection.SimpleQueue("work") as queue:
        for number in range(MESSAGES_PER_PRODUCER):
            queue.put([producer, number])


def consume(path: str, consumer: int, results: Any) -> None:
    received: list[tuple[int, int]] = []
    with broker(path) as connection, connection.SimpleQueue("work") as queue:
        try:
            while True:
                message = queue.get(timeout=STOP_AFTER_IDLE_S)
                producer, number = message.payload
                received.append((producer, number))
                message.ack()
        except Empty:
            results.put((consumer, received))


def test_each_of_8000_messages_is_delivered_once_and_in_order_per_producer(tmp_path: Path) -> None:
    path = str(tmp_path / "queue.sqlite3")
    results = spawn.Queue()
    processes = [
        *(spawn.Process(target=produce, args=(path, producer)) for producer in range(PRODUCERS)),
        *(spawn.Process(target=consume, args=(path, consumer, results)) for consumer in range(CONSUMERS)),
    ]
    try:
        for process in processes:
            process.start()
        received = dict(results.get(timeout=120) for _ in range(CONSUMERS))
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    counts = Counter(message for messages in received.values() for message in messages)
    expected = set(itertools.product(range(PRODUCERS), range(MESSAGES_PER_PRODUCER)))
    assert set(counts) == expected
    assert set(counts.values()) == {1}
    for messages in received.values():
        assert messages, "one consumer took everything: nothing was contended for"
        for producer in range(PRODUCERS):
            numbers = [number for sender, number in messages if sender == producer]
            assert numbers == sorted(numbers)


def test_a_message_taken_but_not_acknowledged_returns_when_its_consumer_closes(tmp_path: Path) -> None:
    path = str(tmp_path / "queue.sqlite3")
    with broker(path) as connection:
        connection.SimpleQueue("work").put("once")
    with broker(path) as connection:
        assert connection.SimpleQueue("work").get(timeout=1).payload == "once"
    with broker(path) as connection:
        assert connection.SimpleQueue("work").get(timeout=1).payload == "once"


def test_queues_do_not_see_each_other_and_can_be_counted_and_purged(tmp_path: Path) -> None:
    with broker(str(tmp_path / "queue.sqlite3")) as connection:
        connection.SimpleQueue("one").put("a")
        connection.SimpleQueue("two").put("b")
        assert connection.SimpleQueue("one").qsize() == 1
        bound = Queue("one")(connection.default_channel)
        assert bound.purge() == 1
        assert connection.SimpleQueue("one").qsize() == 0
        assert connection.SimpleQueue("two").qsize() == 1


def announce(path: str, count: int) -> None:
    layer = SqliteChannelLayer(path=path)

    async def send_all() -> None:
        for number in range(count):
            await layer.group_send("run.1", {"type": "run.event", "seq": number, "blob": b"\x00\xff"})
            await layer.group_send("run.2", {"type": "run.event", "seq": -number})

    asyncio.run(send_all())


async def test_a_group_hears_what_another_process_sends_in_order_and_nothing_else(tmp_path: Path) -> None:
    path = str(tmp_path / "bus.sqlite3")
    layer = SqliteChannelLayer(path=path, capacity=1000)
    channels = [await layer.new_channel() for _ in range(3)]
    for channel in channels[:2]:
        await layer.group_add("run.1", channel)
    sender = spawn.Process(target=announce, args=(path, 200))
    sender.start()
    try:
        for channel in channels[:2]:
            heard = [await asyncio.wait_for(layer.receive(channel), 20) for _ in range(200)]
            assert [message["seq"] for message in heard] == list(range(200))
            assert heard[0]["blob"] == b"\x00\xff"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(layer.receive(channels[2]), 0.1)
    finally:
        sender.join(5)
        sender.kill()
        await layer.close()


async def test_who_joins_later_hears_only_what_is_sent_from_then_on(tmp_path: Path) -> None:
    layer = SqliteChannelLayer(path=str(tmp_path / "bus.sqlite3"))
    await layer.group_send("run.1", {"type": "run.event", "seq": 1})
    channel = await layer.new_channel()
    await layer.group_add("run.1", channel)
    await layer.group_send("run.1", {"type": "run.event", "seq": 2})
    assert (await asyncio.wait_for(layer.receive(channel), 5))["seq"] == 2
    await layer.close()


async def test_the_reader_stops_when_the_last_member_leaves_and_starts_again(tmp_path: Path) -> None:
    layer = SqliteChannelLayer(path=str(tmp_path / "bus.sqlite3"))
    channel = await layer.new_channel()
    for seq in (1, 2):
        await layer.group_add("run.1", channel)
        await layer.group_send("run.1", {"type": "run.event", "seq": seq})
        assert (await asyncio.wait_for(layer.receive(channel), 5))["seq"] == seq
        await layer.group_discard("run.1", channel)
        await asyncio.sleep(0.06)
        assert len(asyncio.all_tasks()) == 1, "a process without members must not read"
    await layer.group_send("run.1", {"type": "run.event", "seq": 3})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive(channel), 0.1)
