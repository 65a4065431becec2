#!/usr/bin/env python3
"""Makes tests/golden/adapters: what PEFT computes with LoRA adapters on golden checkpoints.

    python tools/make_adapter_goldens.py [--only NAME]

NAME/adapter_config.json is PEFT's own; NAME/weights.txt is the recipe (goldens/grown.py) of
adapter_model.safetensors, whose names are those that PEFT saves. NAME.reference.safetensors has, in
float64 for the checkpoint of the golden model NAME with the adapter,

| tensor | what |
|---|---|
| `prompt_ids` i64 [T] | the prompt |
| `final` f32 [T, hidden] | after the final norm |
| `logits` f32 [T, V] | |
"""

import json
import pathlib
import shutil
import tempfile

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from peft.utils import transformers_weight_conversion
from safetensors.torch import save_file

from goldens import grown, reference
from goldens.drafts import PROMPT, ROOT, base_tensors, make_each

FOLDER = ROOT / "adapters"

# It would make the projections of shared experts, which adapters of earlier versions have, those of
# experts.
transformers_weight_conversion._convert_peft_config_moe = lambda config, model: None

# By golden model. Ranks and scalings differ between modules; every kind of product is adapted.
CASES = {
    # q, k and v are one product, and so are gate and up; the adapter lacks v.
    "qwen3-tied": {
        "r": 4,
        "lora_alpha": 6,
        "target_modules": ["q_proj", "k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        "rank_pattern": {"k_proj": 3, "layers\\.1\\.mlp\\.down_proj": 2},
        "alpha_pattern": {"o_proj": 5},
    },
    # The checkpoint has them as one matrix.
    "phi3": {"r": 3, "lora_alpha": 3, "use_rslora": True, "target_modules": "all-linear"},
    # Latent attention with a query of low rank, a dense block, shared experts.
    "glm4-moe-lite": {
        "r": 5,
        "lora_alpha": 7,
        "target_modules": r".*(q_a_proj|q_b_proj|kv_a_proj_with_mqa|o_proj|mlp\.gate_proj"
        r"|mlp\.up_proj|mlp\.down_proj|shared_experts\.\w+_proj)",
    },
    # Rows in runs: queries with their gates, and all inputs of linear attention.
    "qwen3-next": {
        "r": 4,
        "lora_alpha": 4,
        "target_modules": r".*(self_attn\.\w_proj|in_proj_\w+|out_proj|shared_expert\.\w+_proj)",
    },
}


def recipe_of(seed, tensors):
    """Deviations that make an adapter about as strong as what it adapts."""
    lines = [str(seed)]
    for name, tensor in sorted(tensors.items()):
        step = grown.eight_bits(3**0.5 / tensor.shape[1] ** 0.5 / 32768)
        lines.append(f"F32 {'x'.join(map(str, tensor.shape))} 0 {step!r} {name}")
    return "\n".join(lines) + "\n"


def load_base(name):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "models" / name / "config.json", folder)
        tensors = {n: t.contiguous() for n, t in base_tensors(name).items()}
        save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "pt"})
        return reference.load_model(pathlib.Path(folder), torch.float64)


def make(name):
    torch.manual_seed(0)
    model = get_peft_model(load_base(name), LoraConfig(task_type="CAUSAL_LM", **CASES[name]))
    saved = get_peft_model_state_dict(model)
    recipe = recipe_of(len(name), saved)
    tensors = grown.tensors_of(recipe)
    state = dict(model.named_parameters())
    with torch.no_grad():
        for tensor, values in tensors.items():
            state[tensor.replace(".weight", ".default.weight")].copy_(values)
    result = reference.run(model.base_model.model, PROMPT)
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as other:
        model.save_pretrained(other)
        config = json.loads(pathlib.Path(other, "adapter_config.json").read_text())
    config |= {"base_model_name_or_path": None, "auto_mapping": None}
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "weights.txt").write_text(recipe)
    save_file(
        {
            "prompt_ids": torch.tensor(PROMPT),
            "final": result["final"].float(),
            "logits": result["logits"].float(),
        },
        FOLDER / f"{name}.reference.safetensors",
    )


if __name__ == "__main__":
    make_each(__doc__.splitlines()[0], list(CASES), make)
