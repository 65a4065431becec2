"""python bench.py MODEL.gguf [--threads 2] [--batch 1] [--prompt 512] [--generate 0]: speed of
llama.cpp's own server, from the wheel of xllamacpp (PyPI), by its own clock. Prints one JSON object
with the tokens/s of the prompts, or of what is generated after them if --generate is more than 0:
those of all requests together."""

import argparse
import json
import random
from concurrent.futures import ThreadPoolExecutor

import xllamacpp


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=1, help="requests at once")
    p.add_argument("--prompt", type=int, default=512)
    p.add_argument("--generate", type=int, default=0)
    o = p.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = o.model
    params.n_parallel = o.batch
    params.n_ctx = o.batch * (o.prompt + o.generate + 64)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = o.threads
    params.verbosity = 0
    server = xllamacpp.Server(params)
    draw = random.Random(1)

    def complete(_):
        request = {
            "prompt": [draw.randrange(1000, 50000) for _ in range(o.prompt)],
            "n_predict": max(o.generate, 1),
            "ignore_eos": True,
            "cache_prompt": False,
            "temperature": 0,
        }
        return server.handle_completions(request)["timings"]

    with ThreadPoolExecutor(o.batch) as pool:
        timings = list(pool.map(complete, range(o.batch)))
    key = "predicted_per_second" if o.generate > 0 else "prompt_per_second"
    print(json.dumps({"avg_ts": sum(t[key] for t in timings)}))


if __name__ == "__main__":
    main()
