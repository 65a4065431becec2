"""python serve.py MODEL.gguf [--port 8080] [--threads 2] [--parallel 16]: llama.cpp's own server,
from the wheel of xllamacpp (PyPI), with its defaults but for what is named here. Ends with
Ctrl-C."""

import argparse
import signal
import sys

import xllamacpp


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--port", type=int, default=8080)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--parallel", type=int, default=16, help="requests at once")
    p.add_argument("--context", type=int, default=32768, help="tokens of all of them together")
    o = p.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = o.model
    params.hostnames, params.port = ["127.0.0.1"], o.port
    params.n_parallel, params.n_ctx, params.kv_unified = o.parallel, o.context, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = o.threads
    server = xllamacpp.Server(params)
    print(xllamacpp.get_system_info(), file=sys.stderr)
    print(f"ready on {server.listening_address}", file=sys.stderr, flush=True)
    signal.sigwait([signal.SIGINT, signal.SIGTERM])


if __name__ == "__main__":
    main()
