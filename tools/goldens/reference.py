"""Runs a checkpoint in transformers (eager attention, CPU) and records what a port must match."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from goldens import sparse
from goldens.hybrid import FormulaModel

GREEDY_TOKENS = 24


def load_model(folder, dtype):
    """The model in `dtype`; fails unless every tensor was used, save the old inv_freq buffers and
    the layers that predict a further token."""
    config = AutoConfig.from_pretrained(folder)
    if config.model_type == "longcat_flash":
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=dtype)
        return sparse.load_by_hand(model, folder)
    model, report = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=dtype,
        attn_implementation="eager",
        experts_implementation="eager",
        output_loading_info=True,
    )
    unused = [n for n in report["unexpected_keys"] if not sparse.is_left_out(n, config)]
    wrong = unused + list(report["missing_keys"]) + list(report["mismatched_keys"])
    if wrong:
        raise RuntimeError(f"{folder}: transformers did not load {wrong}")
    return model.eval()


@torch.no_grad()
def run(model, ids):
    """The residual stream after the embedding and after each layer, its final norm, and logits.

    transformers applies the final norm to its last `hidden_states` entry; hooks see the stream
    before it.
    """
    stream, final = [], []

    def append(sink, output):
        sink.append(output[0] if isinstance(output, tuple) else output)

    base = model.model
    names = ("norm", "norm_f", "embedding_norm")
    norm = next(getattr(base, name) for name in names if hasattr(base, name))
    hooks = [base.layers[0].register_forward_pre_hook(lambda _, inputs: stream.append(inputs[0]))]
    hooks += [
        module.register_forward_hook(lambda _, __, output, sink=sink: append(sink, output))
        for module, sink in [*((layer, stream) for layer in base.layers), (norm, final)]
    ]
    logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()
    return {"hidden": torch.cat(stream), "final": final[0][0], "logits": logits}


@torch.no_grad()
def greedy(model, ids):
    """Greedy continuation, each step a full forward pass; end-of-sequence ids do not stop it.

    Returns the tokens, their logprobs and the logit margin of the best over the second best.
    """
    ids, logprobs, margins = list(ids), [], []
    for _ in range(GREEDY_TOKENS):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1].double()
        best, second = torch.topk(logits, 2).values
        ids.append(int(logits.argmax()))
        logprobs.append(float(logits.log_softmax(-1).max()))
        margins.append(float(best - second))
    return {
        "ids": torch.tensor(ids[-GREEDY_TOKENS:]),
        "logprobs": torch.tensor(logprobs),
        "margins": torch.tensor(margins),
    }


def prompt_logprobs(logits, ids):
    """log p(ids[i + 1] | ids[..i]) for i in 0 .. T-2, f32 [T - 1]."""
    following = torch.tensor(ids[1:])[:, None]
    return logits[:-1].double().log_softmax(-1).gather(1, following)[:, 0].float()


def reference_of(folder, ids, by_formula=False):
    """The tensors of the reference file, all from a float32 run of the weights on disk, or by
    formula from a float64 one."""
    model = FormulaModel(folder) if by_formula else load_model(folder, torch.float32)
    outputs = model.run(ids) if by_formula else run(model, ids)
    result = {"prompt_ids": torch.tensor(ids)} | outputs
    result["prompt_logprobs"] = prompt_logprobs(outputs["logits"], ids)
    for start, prompt in (("greedy", ids), ("single", ids[:1])):
        result |= {f"{start}_{key}": value for key, value in greedy(model, prompt).items()}
    return {name: tensor.contiguous() for name, tensor in result.items()}
