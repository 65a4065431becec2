#!/usr/bin/env python3
"""What LoRA adapters cost: decode of a batch and prefill, with none, one and several adapters.

    python tools/measure_adapters.py BANYAN CONFIG_FOLDER [--batch 8] [--rank 16] [--rounds 5]

Weights are random numbers (--load-format dummy), and so are the adapters, of every attention and
feed-forward projection of a Qwen3 or Llama. Each round runs all configurations, so that what else
the machine does meets them alike; medians of the rounds are printed, and the bytes and products of
the adapters as parts of the model's.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import numpy
from safetensors.numpy import save_file


def modules(config):
    """Names within a layer, with rows and columns."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim", hidden // config["num_attention_heads"])
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    return {
        "self_attn.q_proj": (q, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, q),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }


def write_adapter(folder, config, rank, seed):
    random = numpy.random.default_rng(seed)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for name, (rows, columns) in modules(config).items():
            scope = f"base_model.model.model.layers.{layer}.{name}"
            for part, shape in (("A", (rank, columns)), ("B", (rows, rank))):
                values = random.standard_normal(shape, dtype=numpy.float32) / shape[1] ** 0.5
                tensors[f"{scope}.lora_{part}.weight"] = values.astype(numpy.float16)
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("banyan", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    config = json.loads((a.model / "config.json").read_text())
    layers, sizes = config["num_hidden_layers"], modules(config).values()
    base = layers * sum(rows * columns for rows, columns in sizes)
    delta = layers * sum(a.rank * (rows + columns) for rows, columns in sizes)
    head = config["vocab_size"] * config["hidden_size"]
    counts = (0, 1, a.batch)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        paths = [folder / str(i) for i in range(a.batch)]
        for i, path in enumerate(paths):
            write_adapter(path, config, a.rank, i)

        def run(count):
            """Tokens/s of decode of the batch, and of prefill of one prompt of 512."""
            options = ["--load-format", "dummy", "--no-limits", "--json"]
            if count:
                options += ["--lora-paths", *(f"{i}={paths[i]}" for i in range(count))]
            speeds = []
            decode = ["--batch-size", str(a.batch), "--input-len", "32"]
            for more in (decode, ["--output-len", "2"]):
                command = [a.banyan, "bench", "one-batch", a.model, *options, *more]
                result = subprocess.run(command, capture_output=True, check=True)
                speeds.append(json.loads(result.stdout)["results"][0])
            return speeds[0]["decode_tokens_per_s"], speeds[1]["prefill_tokens_per_s"]

        rounds = [[run(count) for count in counts] for _ in range(a.rounds)]
    print("| adapters | decode, tokens/s | part of none | bytes read | prefill, tokens/s | part |")
    print("|---|---|---|---|---|---|")
    for i, count in enumerate(counts):
        decode, prefill = (
            statistics.median(speeds[i][kind] for speeds in rounds) for kind in (0, 1)
        )
        parts = [statistics.median(s[i][kind] / s[0][kind] for s in rounds) for kind in (0, 1)]
        read = 1 + count * delta / (base + head)
        print(f"| {count} | {decode:.0f} | {parts[0]:.2f} | {read:.2f} | {prefill:.0f} "
              f"| {parts[1]:.2f} |")
    print(f"\nproducts of an adapted row: {1 + delta / base:.3f} of one without, in the layers")


if __name__ == "__main__":
    main()
