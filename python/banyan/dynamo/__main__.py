"""Registers a Banyan worker with Dynamo, whose frontend then sends it requests as token ids.

    banyan serve MODEL --port 30001 --page-size 64 --kv-events-config \\
        '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557"}'
    python -m banyan.dynamo --url http://127.0.0.1:30001 --kv-events tcp://127.0.0.1:5557

Run one for each worker, on its machine. Further options are Dynamo's own, such as --namespace,
--discovery-backend and --endpoint-types; --help lists them.
"""

from dynamo.common.backend.run import run

from banyan.dynamo.engine import BanyanEngine

if __name__ == "__main__":
    run(BanyanEngine)
