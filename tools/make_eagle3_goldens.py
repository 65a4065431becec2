#!/usr/bin/env python3
"""Makes tests/golden/eagle3: what EAGLE-3 heads compute on top of golden checkpoints.

    python tools/make_eagle3_goldens.py [--only NAME]

NAME.config.json is the head's config, NAME.txt the recipe (goldens/grown.py) of its tensors.
NAME.reference.safetensors has its d2t and t2d and, in float64 from the formula that SGLang
(models/llama_eagle3.py) and vLLM share,

    g = fc(hidden states of the model's layers)    in later passes the last m
    a = g + attention([norm(embed(token)) | norm(g)])
    m = a + mlp(norm(a)),  logits = lm_head(norm(m)), of token j + d2t[j]

for the prompt t_0 .. t_{T-1}:

| tensor | what |
|---|---|
| `prompt_ids` i64 [T] | the prompt |
| `first` f32 [V] | log-probabilities after the pairs (t_1, g_0) .. (t_{T-1}, g_{T-2}): of token T |
| `second` f32 [V] | those after one more pair: the most likely token of `first`, and the last m |

Tokens outside the draft vocabulary have a log-probability of -1e30.
"""

import json
import pathlib
import shutil
import tempfile

import torch

from goldens import grown
from goldens.drafts import PROMPT, ROOT, base_tensors, make_each, recipe_of, save, two_steps
from goldens.ground import linear, rms_norm
from make_prediction_goldens import Published

FOLDER = ROOT / "eagle3"
DRAFT_VOCABULARY = 37
MODEL = "qwen3-moe"
LAYER = {
    "hidden_act": "silu",
    "hidden_size": 40,
    "intermediate_size": 28,
    "max_position_embeddings": 64,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "num_hidden_layers": 1,
    "rms_norm_eps": 1e-4,
    "rope_theta": 500.0,
    "vocab_size": 97,
}
# By name: the config, and the layers of the model whose inputs are read.
CASES = {
    # As the authors and SGLang name the keys; the list has inputs of layers.
    "eagle3": (
        LAYER
        | {
            "architectures": ["LlamaForCausalLMEagle3"],
            "model_type": "llama",
            "draft_vocab_size": DRAFT_VOCABULARY,
            "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 2, 4]},
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
        },
        [0, 2, 4],
    ),
    # As vLLM's speculators do, with all that may differ; the list has outputs of layers.
    "eagle3-speculator": (
        {
            "architectures": ["Eagle3Speculator"],
            "draft_vocab_size": DRAFT_VOCABULARY,
            "target_hidden_size": 40,
            "eagle_aux_hidden_state_layer_ids": [1, 2, 3],
            "norm_before_residual": True,
            "norm_before_fc": True,
            "norm_output": True,
            "speculators_model_type": "eagle3",
            "speculators_version": "0.1.0",
            "speculators_config": {"algorithm": "eagle3"},
            "tie_word_embeddings": False,
            "transformer_layer_config": LAYER
            | {"hidden_size": 32, "attention_bias": True, "mlp_bias": True, "model_type": "llama"},
        },
        [2, 3, 4],
    ),
}


class Head:
    def __init__(self, name):
        self.name, (self.config, self.layers) = name, CASES[name]
        self.layer = self.config.get("transformer_layer_config", self.config)
        self.numbered = self.layer is not self.config
        self.scope = "layers.0." if self.numbered else "midlayer."

    def shapes(self):
        c = self.layer
        hidden, inner, dim = c["hidden_size"], c["intermediate_size"], c["head_dim"]
        q, kv = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
        attention, mlp = self.scope + "self_attn.", self.scope + "mlp."
        shapes = {
            "fc.weight": (hidden, 3 * LAYER["hidden_size"]),
            "norm.weight": (hidden,),
            "lm_head.weight": (DRAFT_VOCABULARY, hidden),
            f"{self.scope}hidden_norm.weight": (hidden,),
            f"{self.scope}input_layernorm.weight": (hidden,),
            f"{self.scope}post_attention_layernorm.weight": (hidden,),
            f"{attention}q_proj.weight": (q, 2 * hidden),
            f"{attention}k_proj.weight": (kv, 2 * hidden),
            f"{attention}v_proj.weight": (kv, 2 * hidden),
            f"{attention}o_proj.weight": (hidden, q),
            f"{mlp}gate_proj.weight": (inner, hidden),
            f"{mlp}up_proj.weight": (inner, hidden),
            f"{mlp}down_proj.weight": (hidden, inner),
        }
        if self.numbered:
            shapes["embed_tokens.weight"] = (c["vocab_size"], hidden)
            shapes["input_norm.weight"] = (3 * LAYER["hidden_size"],)
            for name, shape in list(shapes.items()):
                if "_proj." in name:
                    shapes[name.replace("weight", "bias")] = shape[:1]
        return shapes

    def rope(self, x):
        """x [T, heads, dim]; row i is at position i."""
        dim = x.shape[-1]
        frequencies = self.layer["rope_theta"] ** -(torch.arange(0, dim, 2).double() / dim)
        angles = torch.arange(len(x)).double()[:, None] * frequencies
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        low, high = x.chunk(2, -1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)

    def attention(self, tensors, x):
        c, scope, rows = self.layer, self.scope + "self_attn.", len(x)

        def heads(part, count):
            return linear(tensors, scope + part, x).view(rows, count, c["head_dim"])

        group = c["num_attention_heads"] // c["num_key_value_heads"]
        q = self.rope(heads("q_proj", c["num_attention_heads"]))
        k = self.rope(heads("k_proj", c["num_key_value_heads"])).repeat_interleave(group, 1)
        v = heads("v_proj", c["num_key_value_heads"]).repeat_interleave(group, 1)
        scores = torch.einsum("ihd,jhd->hij", q, k) / c["head_dim"] ** 0.5
        scores += torch.full((rows, rows), -torch.inf, dtype=x.dtype).triu(1)
        y = torch.einsum("hij,jhd->ihd", scores.softmax(-1), v).reshape(rows, -1)
        return linear(tensors, scope + "o_proj", y)

    def join(self, tensors, features):
        if self.config.get("norm_before_fc"):
            features = self.norm(tensors, "input_norm", features)
        return linear(tensors, "fc", features)

    def norm(self, tensors, name, x):
        return rms_norm(x, tensors[name + ".weight"], self.layer["rms_norm_eps"])

    def __call__(self, tensors, embedded, g):
        tokens = self.norm(tensors, self.scope + "input_layernorm", embedded)
        hidden = self.norm(tensors, self.scope + "hidden_norm", g)
        residual = hidden if self.config.get("norm_before_residual") else g
        a = residual + self.attention(tensors, torch.cat([tokens, hidden], -1))
        x = self.norm(tensors, self.scope + "post_attention_layernorm", a)
        mlp = self.scope + "mlp."
        gate = torch.nn.functional.silu(linear(tensors, mlp + "gate_proj", x))
        return a + linear(tensors, mlp + "down_proj", gate * linear(tensors, mlp + "up_proj", x))


class Model(Published):
    """A golden checkpoint, and the inputs of its layers."""

    def __init__(self, name):
        self.config = json.loads((ROOT / "models" / name / "config.json").read_text())
        tensors = base_tensors(name)
        super().__init__(name, self.config, tensors)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "models" / name / "config.json", folder)
            self.layers -= 1  # the one that Published adds is the model's last
            self.load(pathlib.Path(folder), tensors)
            self.layers += 1

    def inputs(self, ids):
        base = self.model.model
        states = [base.embed_tokens(torch.tensor(ids))]
        for layer in base.layers:
            states.append(self.run_layers(states[-1], [layer]))
        return states


def vocabulary():
    """d2t and t2d: every second and third token."""
    tokens = [t for t in range(LAYER["vocab_size"]) if t % 2 == 0 or t % 3 == 0]
    tokens = torch.tensor(tokens[:DRAFT_VOCABULARY])
    t2d = torch.zeros(LAYER["vocab_size"], dtype=torch.bool)
    t2d[tokens] = True
    return tokens - torch.arange(DRAFT_VOCABULARY), t2d


@torch.no_grad()
def make(name, model):
    head = Head(name)
    recipe = recipe_of(name, head.shapes(), seed=78)
    tensors = {n: t.double() for n, t in grown.tensors_of(recipe).items()}
    states = model.inputs(PROMPT)
    features = torch.cat([states[layer] for layer in head.layers], -1)
    embedding = tensors.get("embed_tokens.weight", model.model.model.embed_tokens.weight)
    d2t, t2d = vocabulary()

    def logprobs(m):
        logits = m[-1] if head.config.get("norm_output") else head.norm(tensors, "norm", m[-1])
        own = (logits @ tensors["lm_head.weight"].T).log_softmax(-1)
        spread = torch.full((LAYER["vocab_size"],), -1e30, dtype=torch.float64)
        spread[torch.arange(DRAFT_VOCABULARY) + d2t] = own
        return spread

    def predict(ids, g):
        m = head(tensors, embedding[torch.tensor(ids)], g)
        return head.norm(tensors, "norm", m) if head.config.get("norm_output") else m

    steps = two_steps(predict, logprobs, head.join(tensors, features)[:-1])
    save(FOLDER, name, recipe, {"d2t": d2t, "t2d": t2d} | steps)
    (FOLDER / f"{name}.config.json").write_text(json.dumps(head.config, indent=2) + "\n")


if __name__ == "__main__":
    model = Model(MODEL)
    make_each(__doc__.splitlines()[0], CASES, lambda name: make(name, model))
