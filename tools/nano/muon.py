"""Muon (Jordan et al. 2024, with the update's size matched to AdamW's as in arXiv:2502.16982) for
matrices, single or stacked, and AdamW for everything else."""

import torch


def orthogonal(g):
    """The nearest orthogonal matrix, by Newton and Schulz's iteration in bf16."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.05):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                held = state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(p.grad.lerp(held, group["momentum"]))
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
