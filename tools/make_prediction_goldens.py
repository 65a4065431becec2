#!/usr/bin/env python3
"""Makes tests/golden/prediction: what the layers that predict a further token (MTP) compute.

    python tools/make_prediction_goldens.py [--only NAME]

NAME.txt is a recipe (goldens/grown.py) of the layer's tensors, which come on top of the golden
checkpoint of that name. NAME.reference.safetensors has, in float64 from the formula

    n = norm(block(eh_proj [enorm(embed(token)) | hnorm(hidden)])),  logits = lm_head(n),

for the prompt t_0 .. t_{T-1} and the model's final hidden states h:

| tensor | what |
|---|---|
| `prompt_ids` i64 [T] | the prompt |
| `first` f32 [V] | log-probabilities after the pairs (t_1, h_0) .. (t_{T-1}, h_{T-2}): of token T |
| `second` f32 [V] | those after one more pair: the most likely token of `first`, and the last n |
"""

import json
import pathlib
import shutil
import tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.longcat_flash import modeling_longcat_flash as longcat

from goldens import grown, hybrid, sparse
from goldens.drafts import PROMPT, ROOT, base_tensors, make_each, recipe_of, save, two_steps
from goldens.ground import rms_norm

FOLDER = ROOT / "prediction"


class Family:
    """Names of the layer's parts, and its block."""

    def __init__(self, name, config, tensors):
        self.name, self.config = name, config
        self.layers = config.get("num_layers") or config["num_hidden_layers"]
        self.scope = f"model.layers.{self.layers}."
        self.block_scope = ""  # of the block, within the scope
        self.token_norm, self.hidden_norm, self.norm = "enorm", "hnorm", "shared_head.norm"
        self.join = "eh_proj"
        self.less_one = 0  # what norms' weights are stored without
        self.like = self.block_like(tensors)

    def block_like(self, tensors):
        """Shapes of the block's tensors by what follows the scope: those of the last layer."""
        before = f"model.layers.{self.layers - 1}."
        return {n[len(before) :]: t.shape for n, t in tensors.items() if n.startswith(before)}

    def shapes(self):
        hidden = self.config["hidden_size"]
        block = self.scope + self.block_scope
        shapes = {block + n: shape for n, shape in self.like.items()}
        shapes[f"{self.scope}{self.join}.weight"] = (hidden, 2 * hidden)
        for norm in (self.token_norm, self.hidden_norm):
            shapes[f"{self.scope}{norm}.weight"] = (hidden,)
        return shapes | {self.norm_name(): (hidden,)}

    def norm_name(self):
        return f"{self.scope}{self.norm}.weight"


class Published(Family):
    """A family whose block is a layer of transformers' model, which is given one more."""

    def load(self, folder, tensors):
        config = AutoConfig.from_pretrained(folder)
        config.num_hidden_layers = self.layers + 1
        if getattr(config, "mlp_layer_types", None):
            config.mlp_layer_types = list(config.mlp_layer_types) + ["sparse"]
        model = AutoModelForCausalLM.from_config(
            config, attn_implementation="eager", experts_implementation="eager", dtype=torch.float64
        )
        parts = ("enorm", "hnorm", "eh_proj", "shared_head")
        keep = {n: t for n, t in tensors.items() if not any(f".{p}." in n for p in parts)}
        with tempfile.TemporaryDirectory() as other:
            save_file({n: t.contiguous() for n, t in keep.items()}, f"{other}/model.safetensors")
            self.model = sparse.load_by_hand(model, pathlib.Path(other))

    def block(self, x):
        return self.run_layers(x, self.model.model.layers[self.layers :])

    def run_layers(self, x, layers):
        base, rows = self.model.model, len(x)
        positions = torch.arange(rows)[None]
        rotation = base.rotary_emb(x[None], positions)
        mask = torch.full((rows, rows), -torch.inf, dtype=x.dtype).triu(1)[None, None]
        y = x[None]
        for layer in layers:
            y = layer(y, attention_mask=mask, position_ids=positions, position_embeddings=rotation)
        return y[0]

    def final(self, ids, tensors):
        base = self.model.model
        x = base.embed_tokens(torch.tensor(ids))
        return base.norm(self.run_layers(x, base.layers[: self.layers]))


class Qwen(Published):
    """The layer is in a scope of its own, and has full attention. Norms' weights are less one."""

    def __init__(self, name, config, tensors):
        super().__init__(name, config, tensors)
        self.scope, self.block_scope, self.join = "mtp.", "layers.0.", "fc"
        self.token_norm, self.hidden_norm = "pre_fc_norm_embedding", "pre_fc_norm_hidden"
        self.norm, self.less_one = "norm", 1

    def block_like(self, tensors):
        like = max(n for n in tensors if n.endswith("self_attn.q_proj.weight"))
        before = like.removesuffix("self_attn.q_proj.weight")
        return {n[len(before) :]: t.shape for n, t in tensors.items() if n.startswith(before)}

    def load(self, folder, tensors):
        config = AutoConfig.from_pretrained(folder)
        config.num_hidden_layers = self.layers + 1
        config.layer_types = config.layer_types[: self.layers] + ["full_attention"]
        model = AutoModelForCausalLM.from_config(
            config, attn_implementation="eager", experts_implementation="eager", dtype=torch.float64
        )
        block, last = self.scope + self.block_scope, f"model.layers.{self.layers}."
        names = {n: n.replace(block, last) for n in tensors}
        keep = {to: tensors[n] for n, to in names.items() if not to.startswith(self.scope)}
        if config.tie_word_embeddings:
            keep["lm_head.weight"] = keep["model.embed_tokens.weight"].clone()
        with tempfile.TemporaryDirectory() as other:
            save_file({n: t.contiguous() for n, t in keep.items()}, f"{other}/model.safetensors")
            self.model = sparse.load_by_hand(model, pathlib.Path(other))

    def final(self, ids, tensors):
        base = self.model.model
        layers, base.layers = base.layers, base.layers[: self.layers]
        base.config.num_hidden_layers = self.layers
        hidden = base(torch.tensor([ids]), use_cache=False).last_hidden_state[0]
        base.layers = layers
        return hidden


class Longcat(Published):
    """One attention and one dense block of LongCat's own."""

    def __init__(self, name, config, tensors):
        super().__init__(name, config, tensors)
        self.scope = "model.mtp.layers.0."
        self.token_norm, self.hidden_norm = "enorm.m", "hnorm.m"

    def norm_name(self):
        return "model.mtp.norm.weight"

    def block_like(self, tensors):
        before = f"model.layers.{self.layers - 1}."
        parts = {
            "self_attn.0.": "self_attn.",
            "mlps.0.": "transformer_layer.mlp.",
            "input_layernorm.0.": "input_layernorm.",
            "post_attention_layernorm.0.": "post_attention_layernorm.",
        }
        return {
            ours + n[len(before + theirs) :]: t.shape
            for theirs, ours in parts.items()
            for n, t in tensors.items()
            if n.startswith(before + theirs)
        }

    def load(self, folder, tensors):
        config = AutoConfig.from_pretrained(folder)
        model = AutoModelForCausalLM.from_config(
            config, attn_implementation="eager", experts_implementation="eager", dtype=torch.float64
        )
        with tempfile.TemporaryDirectory() as other:
            save_file({n: t.contiguous() for n, t in tensors.items()}, f"{other}/model.safetensors")
            self.model = sparse.load_by_hand(model, pathlib.Path(other))
        self.attention = longcat.LongcatFlashMLA(config, 0).double().eval()
        self.mlp = longcat.LongcatFlashMLP(config).double().eval()
        for module, part in ((self.attention, "self_attn."), (self.mlp, "transformer_layer.mlp.")):
            scope = self.scope + part
            found = {n[len(scope) :]: t for n, t in tensors.items() if n.startswith(scope)}
            module.load_state_dict({n: t.double() for n, t in found.items()})
        self.tensors, self.eps = tensors, config.rms_norm_eps

    def block(self, x):
        def norm(name, y):
            return rms_norm(y, self.tensors[f"{self.scope}{name}.weight"].double(), self.eps)

        rows = len(x)
        rotation = self.model.model.rotary_emb(x[None], torch.arange(rows)[None])
        mask = torch.full((rows, rows), -torch.inf, dtype=x.dtype).triu(1)[None, None]
        normed = norm("input_layernorm", x)[None]
        x = x + self.attention(normed, position_embeddings=rotation, attention_mask=mask)[0][0]
        return x + self.mlp(norm("post_attention_layernorm", x))


class Ling(Family):
    """By formula: goldens/hybrid.py."""

    def __init__(self, name, config, tensors):
        super().__init__(name, config, tensors)
        self.norm = "final_layernorm"

    def load(self, folder, tensors):
        self.folder = folder
        self.tensors = {n: t.double() for n, t in tensors.items()}
        more = self.config | {"num_hidden_layers": self.layers + 1}
        self.family = hybrid.Family(more)
        self.family.is_mla = lambda layer: True

    def block(self, x):
        scope, eps = self.scope, self.config["rms_norm_eps"]
        normed = rms_norm(x, self.tensors[f"{scope}input_layernorm.weight"], eps)
        x = x + hybrid.mixer(self.family, self.tensors, self.layers, normed)
        normed = rms_norm(x, self.tensors[f"{scope}post_attention_layernorm.weight"], eps)
        return x + hybrid.ffn(self.family, self.tensors, self.layers, normed)[0]

    def final(self, ids, tensors):
        return hybrid.run_tensors(self.folder, self.tensors, ids)["final"]


FAMILIES = {
    "deepseek-v3": Published,
    "glm4-moe-lite": Published,
    "glm4-moe": Published,
    "longcat-flash": Longcat,
    "ling3-tiny": Ling,
    "qwen3-next": Qwen,
    "qwen3-5": Qwen,
}


@torch.no_grad()
def make(name):
    config = json.loads((ROOT / "models" / name / "config.json").read_text())
    tensors = base_tensors(name)
    family = FAMILIES[name](name, config, tensors)
    recipe = recipe_of(name, family.shapes(), seed=77, norm_center=1 - family.less_one)
    further = f"model.layers.{family.layers}."
    scopes = (further, "model.mtp.", "mtp.")
    tensors = {n: t for n, t in tensors.items() if not n.startswith(scopes)}
    tensors |= grown.tensors_of(recipe)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copy(ROOT / "models" / name / "config.json", folder)
        family.load(folder, tensors)
        hidden = family.final(PROMPT, tensors)
    tensors = {n: t.double() for n, t in tensors.items()}
    eps = config["rms_norm_eps"]
    embedding = next(t for n, t in tensors.items() if n.endswith("_embeddings.weight")
                     or n == "model.embed_tokens.weight")

    def predict(ids, hidden):
        def norm(name, y):
            return rms_norm(y, family.less_one + tensors[f"{family.scope}{name}.weight"], eps)

        tokens = norm(family.token_norm, embedding[torch.tensor(ids)])
        joined = torch.cat([tokens, norm(family.hidden_norm, hidden)], -1)
        x = family.block(joined @ tensors[f"{family.scope}{family.join}.weight"].T)
        return rms_norm(x, family.less_one + tensors[family.norm_name()], eps)

    def logprobs(n):
        return (n[-1] @ tensors.get("lm_head.weight", embedding).T).log_softmax(-1)

    save(FOLDER, name, recipe, two_steps(predict, logprobs, hidden[:-1]))


if __name__ == "__main__":
    make_each(__doc__.splitlines()[0], FAMILIES, make)
