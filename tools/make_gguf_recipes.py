#!/usr/bin/env python3
"""Makes tests/golden/gguf/recipes.json: golden checkpoints as llama.cpp's converter writes them.

    python tools/make_gguf_recipes.py LLAMA_CPP

LLAMA_CPP is a folder of llama.cpp's source, with convert_hf_to_gguf.py and its packages. Each
checkpoint is converted, and for every tensor of the GGUF file it is found out by trial how its
numbers came about. A recipe has the metadata and, for each tensor, how it is made of the
checkpoint's: tests/support/gguf_file.cpp makes the file again from that. `#` stands for the number
of a layer, `@` for that of an expert:

    copy NAME          as it is
    turn HEADS NAME    rows of each head in the order 0, half, 1, half + 1, ...
    more NAME          plus one
    stack NAME         of all experts, one after the other
    swap NAME          [experts, columns, rows] as [experts, rows, columns]
    swap-even, swap-odd, even, odd NAME    of that every other row
    keys, values HEADS ROWS NAME    of each head the first ROWS rows, turned on their side, or the
                       others
    swap-first, swap-second NAME    of that every matrix's first or second half
    rate NAME          minus the exponential; exp the exponential
    tile FIRST OUTER INNER ROWS NAME    from row FIRST on [OUTER, INNER, ROWS] as
                       [INNER, OUTER, ROWS]; tile-rate of the rate, tile-columns of columns
    runs RUNS BEGIN END ... NAME    of each of RUNS equal runs of rows those from BEGIN to END, of
                       all runs, then those of the next range

Before these may stand the shape in the file, where it is not the checkpoint's.
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile

import numpy
import torch
from goldens import grown
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "golden" / "models"
YARN = {
    "rope_scaling": {
        "type": "yarn",
        "factor": 4.0,
        "mscale": 1.3,
        "mscale_all_dim": 1.3,
        "original_max_position_embeddings": 64,
    }
}
# What changes in config.json before: values that a GGUF file cannot have.
CASES = {
    "llama31-gqa": {},
    "llama-linear-f16": {},
    "llama-bias": {},
    "mixtral": {"sliding_window": None},
    "qwen2-tied": {},
    "qwen3-yarn": {},
    "qwen3-moe-window": {"use_sliding_window": False},
    "gemma2": {"query_pre_attn_scalar": 10, "rope_theta": 10000.0},
    "gemma3": {
        "query_pre_attn_scalar": 10,
        "rope_local_base_freq": 10000.0,
        "sliding_window_pattern": 6,
    },
    "gpt-oss": {"swiglu_limit": 7.0},
    "granite": {},
    "olmo3": {},
    "phi3": {},
    "seed-oss": {},
    "smollm3": {"no_rope_layer_interval": 4, "use_sliding_window": False, "sliding_window": None},
    "ernie4-5": {},
    "ernie4-5-moe": {},
    "exaone4": {},
    "glm4": {},
    "glm4-moe": {},
    "minimax-m2": {},
    "ministral3": {},
    "deepseek-v3": YARN,
    "glm4-moe-lite": {},
    "lfm2-moe": {"routed_scaling_factor": 1.0},
    "ling2": {},
    "ling3-tiny": {"rope_scaling": None},
    "hunyuan": {"rope_scaling": None},
    "hunyuan-moe": {"moe_intermediate_size": [12, 12], "num_shared_expert": [1, 1]},
    "llama4": {
        "attention_chunk_size": 8192,
        "no_rope_layers": [1, 1, 1, 0],
        "no_rope_layer_interval": 4,
        "floor_scale": 8192,
        "attn_scale": 0.1,
    },
    "qwen3-next": {"num_hidden_layers": 1},
    "qwen3-5": {},
    "qwen3-5-moe": {},
    "granite-hybrid": {},
    "granite-hybrid-dense": {"position_embedding_type": "nope", "time_step_limit": None},
    "nemotron-h": {"time_step_min": 0.001},
    "kimi-linear": {},
    "gemma4": {},
    "gemma4-moe": {},
    # The scale of its queries is not converted.
    "mistral4": {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1000.0,
            "factor": 8.0,
            "original_max_position_embeddings": 16,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "partial_rotary_factor": 0.4,
        }
    },
    "minimax-m3": {"swiglu_limit": 7.0},
    "granite-moe": {},
    "deepseek-v32": YARN,
    "glm-moe-dsa": {},
    "deepseek-v2": {},
    "deepseek-v2-lite": {},
}
# What the converter wants of a config besides.
WANTED = {
    "nemotron-h": {"mamba_d_head": 7},
    "ling2": {"num_nextn_predict_layers": 0},
    # transformers knows this type, and the next, and would change the config.
    "ling3-tiny": {"num_nextn_predict_layers": 0, "model_type": "bailing_moe_v3"},
    "minimax-m3": {"model_type": "minimax_m3"},
    "mistral4": {"architectures": ["Mistral3ForConditionalGeneration"]},
}
# Tensors left out: layers for prediction, which these cases have only in part, and those that
# follow a layer without experts, which the converter does not expect.
DROPPED = {
    "ling2": ["model.layers.3."],
    "ling3-tiny": ["model.layers.5."],
    "qwen3-next": ["mtp.", "model.layers.1.", "model.layers.2.", "model.layers.3."],
}


def checkpoint(name, change):
    """A folder with the checkpoint, and its tensors in float32."""
    folder = pathlib.Path(tempfile.mkdtemp())
    recipe = MODELS / name / "weights.txt"
    if recipe.exists():
        tensors = grown.tensors_of(recipe.read_text())
    else:
        tensors = load_file(MODELS / name / "model.safetensors")
    config = json.loads((MODELS / name / "config.json").read_text()) | change
    config |= WANTED.get(name, {})
    (folder / "config.json").write_text(json.dumps(config))
    dropped = tuple(DROPPED.get(name, []))
    tensors = {n: t for n, t in tensors.items() if not n.startswith(dropped)}
    vocabulary = {str(i): i for i in range(config["vocab_size"])}
    tokenizer = {"model": {"vocab": vocabulary}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "model.safetensors")
    return folder, {n: t.float().numpy() for n, t in tensors.items()}


def convert(folder, base, gguf):
    """The reader of the file that the converter makes."""
    from conversion import get_model_class

    config = base.ModelBase.load_hparams(folder, False)
    kind = get_model_class(base.get_model_architecture(config, base.ModelType.TEXT))
    kind.no_mtp = config["architectures"][0].startswith(("Qwen3_5", "Qwen3Next"))
    out = folder / "out.gguf"
    with torch.inference_mode():
        model = kind(folder, gguf.LlamaFileType.ALL_F32, out, eager=True)
        model = getattr(model, "impl", model)  # Mistral's stands for one of two
        model.set_vocab = lambda: model.gguf_writer.add_tokenizer_model("no_vocab")
        model.write()
    return gguf.GGUFReader(out)


def turned(tensor, heads):
    half = tensor.shape[0] // heads // 2
    return tensor.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(tensor.shape)


def rate(tensor):
    return -torch.exp(torch.from_numpy(tensor)).numpy()


def tiled(tensor, first, sizes):
    rest = tensor[first:]
    swapped = rest.reshape(*sizes, -1).swapaxes(0, 1).reshape(rest.shape)
    return numpy.concatenate([tensor[:first], swapped])


def run_rows(tensor, runs, ranges):
    parts = tensor.reshape(runs, -1, tensor.shape[-1])
    rows = [parts[:, begin:end].reshape(-1, tensor.shape[-1]) for begin, end in ranges]
    return numpy.concatenate(rows)


def gated_delta(name, tensor, config):
    """Recipes of Gated DeltaNet, whose value heads are several for a key head."""
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    key, value = config["linear_key_head_dim"], config["linear_value_head_dim"]
    inner, all_keys = values // keys, 2 * keys * key
    if tensor.shape[0] == values:
        yield f"tile 0 {keys} {inner} 1 {name}", tiled(tensor, 0, (keys, inner, 1))
        yield f"tile-rate 0 {keys} {inner} 1 {name}", tiled(rate(tensor), 0, (keys, inner, 1))
    for first in (0, all_keys):
        if tensor.shape[0] == first + values * value:
            sizes = (keys, inner, value)
            yield f"tile {first} {keys} {inner} {value} {name}", tiled(tensor, first, sizes)
    if tensor.shape[-1] == values * value:
        columns = tiled(tensor.swapaxes(0, 1), 0, (keys, inner, value)).swapaxes(0, 1)
        yield f"tile-columns 0 {keys} {inner} {value} {name}", columns
    if "qkvz" in name:
        end = 2 * key + inner * value
        ranges = [(0, key), (key, 2 * key), (2 * key, end)]
        numbers = " ".join(f"{b} {e}" for b, e in ranges)
        yield f"runs {keys} {numbers} {name}", run_rows(tensor, keys, ranges)
        last = [(end, end + inner * value)]
        yield f"runs {keys} {end} {end + inner * value} {name}", run_rows(tensor, keys, last)


def makers(name, tensor, heads):
    """Every recipe of one tensor, or of all that an expert's stands for, and its result."""
    yield f"copy {name}", tensor
    yield f"rate {name}", rate(tensor)
    yield f"exp {name}", -rate(tensor)
    if tensor.ndim >= 2 and tensor.shape[-2] % 2 == 0:
        runs, rows = tensor.size // tensor.shape[-1] // tensor.shape[-2], tensor.shape[-2]
        for begin, end in ((0, rows // 2), (rows // 2, rows)):
            made = run_rows(tensor, runs, [(begin, end)])
            yield f"runs {runs} {begin} {end} {name}", made
    if tensor.ndim <= 2:
        for count in heads:
            if tensor.shape[0] % (2 * count) == 0:
                yield f"turn {count} {name}", turned(tensor, count)
        yield f"more {name}", tensor + numpy.float32(1)
        yield f"even {name}", tensor[..., ::2]
        yield f"odd {name}", tensor[..., 1::2]
    if tensor.ndim == 3:
        swapped = tensor.swapaxes(1, 2)
        yield f"swap {name}", swapped
        yield f"swap-even {name}", swapped[:, ::2]
        yield f"swap-odd {name}", swapped[:, 1::2]
        yield f"swap-first {name}", swapped[:, : swapped.shape[1] // 2]
        yield f"swap-second {name}", swapped[:, swapped.shape[1] // 2 :]


def stacks(tensors):
    """Experts' matrices as one, by the name with `@`."""
    experts = {}
    for name in tensors:
        if found := re.search(r"\.experts\.(\d+)\.", name):
            pattern = name.replace(found[0], ".experts.@.")
            experts.setdefault(pattern, []).append((int(found[1]), name))
    for pattern, parts in experts.items():
        yield f"stack {pattern}", numpy.stack([tensors[name] for _, name in sorted(parts)])


def latents(tensors, config):
    """The two parts of what makes keys and values of latents."""
    for name, tensor in tensors.items():
        if name.endswith("kv_b_proj.weight"):
            heads, rows = config["num_attention_heads"], config["qk_nope_head_dim"]
            parts = tensor.reshape(heads, -1, tensor.shape[1])
            yield f"keys {heads} {rows} {name}", parts[:, :rows].swapaxes(1, 2)
            yield f"values {heads} {rows} {name}", parts[:, rows:]


def recipe_of(tensors, data, heads, config):
    every = [m for name, tensor in tensors.items() for m in makers(name, tensor, heads)]
    every += latents(tensors, config)
    if "linear_num_key_heads" in config:
        every += [m for name, t in tensors.items() for m in gated_delta(name, t, config)]
    for text, made in every + list(stacks(tensors)):
        if made.size == data.size and numpy.array_equal(made.reshape(data.shape), data):
            # A convolution's loses its middle, as in the test; a part has more dimensions.
            conv = made.ndim == 3 and made.shape[1] == 1
            plain = [made.shape[0], made.shape[2]] if conv else list(made.shape)
            same = list(data.shape) == plain or text.startswith(("runs", "stack"))
            return text if same else f"{json.dumps(list(data.shape))} {text}"
    return None


def of_layers(made, tensors):
    """Recipes by name; one for all layers where it fits every layer that has the source."""
    patterns = {}
    for name, text in made:
        layer = re.match(r"blk\.(\d+)\.", name)
        swap = (f".{layer[1]}.", ".#.") if layer else ("", "")
        pattern = name.replace(*swap, 1), text.replace(*swap, 1)
        patterns.setdefault(pattern, []).append((name, text))
    recipes = {}
    for (name, text), members in patterns.items():
        source = text.split()[-1].replace("@", "0")
        layers = [source.replace("#", str(i), 1) in tensors for i in range(100)]
        if "#" in text and sum(layers) == len(members) and name not in recipes:
            members = [(name, text)]
        recipes.update(members)
    return recipes


def make(name, change, base, gguf):
    folder, tensors = checkpoint(name, change)
    config = json.loads((folder / "config.json").read_text())
    reader = convert(folder, base, gguf)
    pairs = {}
    architecture = reader.fields["general.architecture"].contents()
    for key, field in reader.fields.items():
        if key.startswith((architecture + ".", "general.architecture")):
            pairs[key] = field.contents()
    counts = [pairs[f"{architecture}.attention.head_count{kv}"] for kv in ("", "_kv")]
    heads = {max(count) if isinstance(count, list) else count for count in counts}
    made = []
    for tensor in reader.tensors:
        text = recipe_of(tensors, numpy.asarray(tensor.data), heads, config)
        if tensor.name == "rope_freqs.weight":
            pairs[tensor.name] = [float(x) for x in tensor.data]
        elif text is None:
            sys.exit(f"{name}: {tensor.name} is made of nothing known")
        else:
            made.append((tensor.name, text))
    shutil.rmtree(folder)
    recipe = {"config": change, "pairs": pairs, "tensors": of_layers(made, tensors)}
    return recipe | ({"dropped": DROPPED[name]} if name in DROPPED else {})


def main():
    llama = pathlib.Path(sys.argv[1])
    sys.path[:0] = [str(llama), str(llama / "gguf-py")]
    import gguf
    from conversion import base

    recipes = {name: make(name, change, base, gguf) for name, change in CASES.items()}
    path = ROOT / "tests" / "golden" / "gguf" / "recipes.json"
    path.write_text(json.dumps(recipes, indent=0) + "\n")


if __name__ == "__main__":
    main()
