"""KV events over ZeroMQ, read with vLLM's published types (vllm/distributed/kv_events.py)."""

import json
import time

import pytest
from serving import free_port

from conftest import Server

msgspec = pytest.importorskip("msgspec")
zmq = pytest.importorskip("zmq")


class KVCacheEvent(msgspec.Struct, array_like=True, omit_defaults=True, gc=False, tag=True):
    pass


class BlockStored(KVCacheEvent):
    block_hashes: list[bytes | int]
    parent_block_hash: bytes | int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None


class BlockRemoved(KVCacheEvent):
    block_hashes: list[bytes | int]
    medium: str | None


class AllBlocksCleared(KVCacheEvent):
    pass


class KVEventBatch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]
    data_parallel_rank: int | None = None


DECODER = msgspec.msgpack.Decoder(KVEventBatch)


def events_from(socket, wait_s=10):
    """Of the batches until one has events, each an event."""
    assert socket.poll(wait_s * 1000), "no batch came"
    topic, number, payload = socket.recv_multipart()
    assert topic == b"kv" and len(number) == 8
    batch = DECODER.decode(payload)
    assert abs(batch.ts - time.time()) < 60 and batch.data_parallel_rank == 0
    return batch.events


@pytest.fixture(scope="module")
def publishing(model):
    port, replay = free_port(), free_port()
    config = {"enable_kv_cache_events": True, "publisher": "zmq", "topic": "kv",
              "endpoint": f"tcp://*:{port}", "replay_endpoint": f"tcp://*:{replay}"}
    server = Server(model, "--page-size", "16", "--kv-events-config", json.dumps(config))
    yield server, f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{replay}"
    assert server.stop() == 0


def generate(server, ids):
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 1, "temperature": 0}}
    assert server.post("/generate", body).status_code == 200


def subscribed(context, server, address):
    """A socket that hears what the server publishes from now on."""
    socket = context.socket(zmq.SUB)
    socket.connect(address)
    socket.subscribe(b"kv")
    for i in range(100):
        generate(server, [3 + i] * 20)
        if socket.poll(100):
            break
    while socket.poll(200):
        socket.recv_multipart()
    return socket


def test_blocks_are_stored_and_cleared(publishing):
    server, address, _ = publishing
    with zmq.Context() as context, subscribed(context, server, address) as socket:
        prompt = [7, 9] * 20
        generate(server, prompt)
        stored, = events_from(socket)
        assert isinstance(stored, BlockStored)
        assert stored.token_ids == prompt[:32] and stored.block_size == 16
        assert len(set(stored.block_hashes)) == 2 and stored.parent_block_hash is None
        assert stored.medium == "GPU" and stored.lora_id is None
        generate(server, prompt[:32] + [5] * 20)
        more, = events_from(socket)
        assert more.parent_block_hash == stored.block_hashes[-1]
        assert more.token_ids == [5] * 16
        assert server.post("/flush_cache", {}).status_code == 200
        assert isinstance(events_from(socket)[-1], AllBlocksCleared)


def test_missed_batches_are_sent_again(publishing):
    server, _, address = publishing
    generate(server, [11, 12] * 20)
    time.sleep(0.2)
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.connect(address)
        socket.send_multipart([b"", (0).to_bytes(8, "big")])
        numbers, events = [], []
        while True:
            assert socket.poll(10_000), "no end came"
            _, number, payload = socket.recv_multipart()
            if not payload:
                break
            numbers.append(int.from_bytes(number, "big"))
            events += DECODER.decode(payload).events
        assert int.from_bytes(number, "big", signed=True) == -1
        assert numbers == list(range(len(numbers)))
        assert any([11, 12] * 16 == getattr(e, "token_ids", None) for e in events)
