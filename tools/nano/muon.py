"""Muon (Jordan et al. 2024, with the update's size matched to AdamW's as in arXiv:2502.16982) for
matrices, single or stacked, and AdamW for everything else."""

import torch


def fast_type(device):
    """The type that products are fastest in: a CPU without units for bf16 emulates it, which takes
    eight times as long as f32."""
    if device == "cpu" and not torch.cpu._is_avx512_bf16_supported():
        return torch.float32
    return torch.bfloat16


def orthogonal(g, dtype):
    """The nearest orthogonal matrix, by Newton and Schulz's iteration."""
    x = g.to(dtype)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    """Each worker makes the updates of every `workers`th matrix; `exchange` sums what all of them
    made, a list of tensors, in place."""

    workers, worker, exchange = 1, 0, staticmethod(lambda tensors: None)

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.05):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    def update(self, index, p, momentum):
        """The update of p, or zeros where another worker makes it."""
        state = self.state[p]
        if not state:
            state["momentum"] = torch.zeros_like(p)
        held = state["momentum"].lerp_(p.grad, 1 - momentum)
        if index % self.workers != self.worker:
            return torch.zeros_like(p)
        return orthogonal(p.grad.lerp(held, momentum), fast_type(p.device.type))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            learning = [p for p in group["params"] if p.grad is not None]
            # the large ones dealt out evenly
            learning.sort(key=torch.numel, reverse=True)
            updates = [self.update(i, p, group["momentum"]) for i, p in enumerate(learning)]
            self.exchange(updates)
            for p, update in zip(learning, updates):
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * 0.2 * max(p.shape[-2:]) ** 0.5)


def optimizers(model, matrix_lr, lr):
    matrices, others = [], []
    for name, p in model.named_parameters():
        vector = (
            p.ndim < 2
            or "conv1d" in name
            or "embeddings" in name
            or "lm_head" in name
            or ".gate." in name
        )
        (others if vector else matrices).append(p)
    return Muon(matrices, matrix_lr), torch.optim.AdamW(
        others, lr, betas=(0.9, 0.98), weight_decay=0.0
    )
