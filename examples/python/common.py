"""What the examples share: the model that they run on.

    python examples/python/multi_turn_chat.py --model-path models/Qwen3-0.6B
    python examples/python/multi_turn_chat.py --url http://127.0.0.1:30000
"""

import argparse

import banyan as sgl


def choose_backend():
    """From the command line: a model in this process, or a server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-path", help="a model's folder, as Hugging Face publishes it")
    parser.add_argument("--url", help="a server with /generate instead")
    args = parser.parse_args()
    if (args.model_path is None) == (args.url is None):
        parser.error("give one of --model-path and --url")
    backend = sgl.RuntimeEndpoint(args.url) if args.url else sgl.Engine(args.model_path)
    sgl.set_default_backend(backend)
    return backend
