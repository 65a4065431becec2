"""The network of banyan-nano in PyTorch: the Ling 3 layout (BailingMoeV3ForCausalLM), written for
training. Kimi Delta Attention runs in chunks, experts run over sorted tokens, and every parameter
carries the name that it has in the checkpoint, but for experts, which are stacked here."""

import math

import torch
from torch import nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

CHUNK = 16  # positions of a chunk: lower_bound * CHUNK / 2 stays inside the exponents of f32
ROOM_STEP = 32


def normal(*shape, fan_in):
    """Variance-aligned: what a product gives has the variance of what it takes."""
    return nn.Parameter(torch.randn(*shape) * fan_in**-0.5)


class Linear(nn.Module):
    def __init__(self, inner, outer, scale=1.0):
        super().__init__()
        self.weight = normal(outer, inner, fan_in=inner / scale**2)

    def forward(self, x):
        return linear(x, self.weight)


class RmsNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return rms_norm(x.float(), self.weight.shape, self.weight, self.eps)


class Convolve(torch.autograd.Function):
    """A causal depthwise convolution: x [batch, T, width], weight [width, taps], newest last."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        y = x * weight[:, -1]
        for back in range(1, weight.shape[1]):
            y[:, back:].addcmul_(x[:, :-back], weight[:, -1 - back])
        return y

    @staticmethod
    def backward(ctx, d_y):
        x, weight = ctx.saved_tensors
        d_x, d_weight = d_y * weight[:, -1], torch.empty_like(weight)
        d_weight[:, -1] = (d_y * x).sum((0, 1))
        for back in range(1, weight.shape[1]):
            d_x[:, :-back].addcmul_(d_y[:, back:], weight[:, -1 - back])
            d_weight[:, -1 - back] = (d_y[:, back:] * x[:, :-back]).sum((0, 1))
        return d_x, d_weight


class ShortConvolution(nn.Module):
    """silu of a causal depthwise convolution."""

    def __init__(self, width, taps):
        super().__init__()
        weight = torch.randn(width, 1, taps) * 0.2
        weight[:, :, -1] += 1
        self.weight = nn.Parameter(weight)

    def forward(self, x):  # [batch, T, width]
        return silu(Convolve.apply(x.float(), self.weight[:, 0]))


def unit(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


class Scan(torch.autograd.Function):
    """What passes from chunk to chunk. u [rows, chunks, CHUNK, values]; w, write [rows, chunks,
    CHUNK, keys]; keep [rows, chunks, keys, 1]. Of a chunk that starts with state S, the news are
    u - w S, and the next one starts with keep S + write^T news. -> all S, all news. Two products a
    chunk either way; everything else is done for all chunks at once."""

    @staticmethod
    def forward(ctx, w, u, write, keep):
        state = u.new_zeros(len(u), w.shape[-1], u.shape[-1])
        states, news = u.new_empty(*w.shape[:2], *state.shape[1:]), torch.empty_like(u)
        for n in range(u.shape[1]):
            states[:, n] = state
            news[:, n] = torch.baddbmm(u[:, n], w[:, n], state, alpha=-1)
            state = torch.baddbmm(keep[:, n] * state, write[:, n].mT, news[:, n])
        ctx.save_for_backward(w, write, keep, states, news)
        return states, news

    @staticmethod
    def backward(ctx, d_states, d_news):
        w, write, keep, states, news = ctx.saved_tensors
        d_u, d_next = torch.empty_like(news), torch.empty_like(states)
        carried = torch.zeros_like(states[:, 0])
        for n in reversed(range(news.shape[1])):
            d_next[:, n] = carried
            d_u[:, n] = torch.baddbmm(d_news[:, n], write[:, n], carried)
            carried = torch.baddbmm(
                torch.addcmul(d_states[:, n], keep[:, n], carried), w[:, n].mT, d_u[:, n], alpha=-1
            )
        d_keep = (d_next * states).sum(-1, keepdim=True)
        return -d_u @ states.mT, d_u, news @ d_next.mT, d_keep


scan = Scan.apply


def chunk_terms(q, k, v, log_decay, beta):
    """What the scan takes, and what reads its result: [batch, heads, chunks, CHUNK, ...]."""
    q, k, v, g, beta = (x.unflatten(2, (-1, CHUNK)) for x in (q, k, v, log_decay, beta))
    g = torch.ones(CHUNK, CHUNK).tril() @ g  # a running sum, whose gradient is a product too
    last = g[..., -1:, :]
    middle = g[..., CHUNK // 2 - 1 : CHUNK // 2, :]
    up, down = (g - middle).exp(), k * (middle - g).exp()
    below = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril(-1)
    within = ((beta * k * up) @ down.mT).masked_fill(~below, 0)
    mixed = ((q * up) @ down.mT).masked_fill(below.mT, 0)
    # (1 + within)^-1 as a finite product, for `within` is nilpotent
    inverse, power = torch.eye(CHUNK) - within, within
    for _ in range(int(math.log2(CHUNK)) - 1):
        power = power @ power
        inverse = inverse + power @ inverse
    decayed = g.exp()
    scanned = (
        inverse @ (beta * k * decayed),
        inverse @ (beta * v),
        k * (last - g).exp(),
        last.exp().mT,
    )
    return scanned, q * decayed, mixed


def delta_rule(q, k, v, log_decay, beta):
    """The gated delta rule in chunks, f32. q, k, v, log_decay [batch, heads, T, dim], beta [batch,
    heads, T, 1], T a multiple of CHUNK -> [batch, heads, T, dim]."""
    scanned, read, mixed = chunk_terms(unit(q), unit(k), v, log_decay, beta)
    states, news = scan(*(x.flatten(0, 1) for x in scanned))
    out = read.flatten(0, 1) @ states + mixed.flatten(0, 1) @ news
    return out.view(v.shape) * q.shape[-1] ** -0.5


class Kda(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, heads, dim = c["hidden_size"], c["num_attention_heads"], c["head_dim"]
        self.heads, self.bound, width = heads, c["kda_lower_bound"], heads * dim
        for name in "qkv":
            setattr(self, f"{name}_proj", Linear(hidden, width))
            setattr(self, f"{name}_conv1d", ShortConvolution(width, c["short_conv_kernel_size"]))
        self.f_proj, self.g_proj = Linear(hidden, width, 0.5), Linear(hidden, width)
        self.b_proj, self.o_proj = Linear(hidden, heads), Linear(width, hidden, c["output_scale"])
        self.A_log = nn.Parameter(torch.zeros(heads))
        # decays from a few positions to thousands of them at the start
        spans = torch.exp(torch.empty(width).uniform_(math.log(4), math.log(4096)))
        share = 1 / (spans * -self.bound)
        self.dt_bias = nn.Parameter(torch.log(share / (1 - share)))
        self.o_norm = RmsNorm(dim)

    def forward(self, x, _):
        def split(y):
            return y.float().unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k, v = (
            split(getattr(self, f"{n}_conv1d")(getattr(self, f"{n}_proj")(x))) for n in "qkv"
        )
        rate = self.A_log.exp()[:, None, None]
        log_decay = self.bound * torch.sigmoid(rate * split(self.f_proj(x) + self.dt_bias))
        beta = torch.sigmoid(self.b_proj(x).float()).mT[..., None]
        with torch.autocast(x.device.type, enabled=False):
            out = delta_rule(q, k, v, log_decay, beta)
        gate = torch.sigmoid(self.g_proj(x).float())
        return self.o_proj(self.o_norm(out.transpose(1, 2)).flatten(2) * gate)


def rotation(length, dim, theta):
    frequency = theta ** (-torch.arange(0, dim, 2).float() / dim)
    angle = torch.arange(length).float()[:, None] * frequency
    return angle.cos(), angle.sin()


def rotate_pairs(x, turn):
    """x [..., T, dim]: pairs (2i, 2i + 1) turned by position times frequency i."""
    cos, sin = turn
    a, b = x[..., 0::2].float(), x[..., 1::2].float()
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2).to(x.dtype)


class Mla(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, self.heads, self.rank = (
            c["hidden_size"],
            c["num_attention_heads"],
            c["kv_lora_rank"],
        )
        self.nope, self.rope, values = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        self.q_proj = Linear(hidden, self.heads * (self.nope + self.rope))
        self.kv_a_proj_with_mqa = Linear(hidden, self.rank + self.rope)
        self.kv_a_layernorm = RmsNorm(self.rank)
        self.kv_b_proj = Linear(self.rank, self.heads * (self.nope + values))
        self.g_proj = Linear(hidden, self.heads)
        self.dense = Linear(self.heads * values, hidden, c["output_scale"])

    def forward(self, x, turn):
        q = self.q_proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split([self.rank, self.rope], -1)
        kv = self.kv_b_proj(self.kv_a_layernorm(latent))
        kv = kv.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k_rope = rotate_pairs(k_rope[:, None], turn).expand(-1, self.heads, -1, -1)
        q = torch.cat([q[..., : self.nope], rotate_pairs(q[..., self.nope :], turn)], -1)
        k = torch.cat([kv[..., : self.nope], k_rope], -1)
        out = scaled_dot_product_attention(q, k, kv[..., self.nope :], is_causal=True)
        gate = torch.sigmoid(self.g_proj(x).float())[..., None]
        return self.dense((out.transpose(1, 2) * gate).flatten(2))


class Mlp(nn.Module):
    def __init__(self, hidden, inner, scale):
        super().__init__()
        self.gate_proj, self.up_proj = Linear(hidden, inner), Linear(hidden, inner)
        self.down_proj = Linear(inner, hidden, scale)

    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """All routed experts of a layer, stacked: [experts, outer, inner]."""

    def __init__(self, c):
        super().__init__()
        count, hidden, inner = c["num_experts"], c["hidden_size"], c["moe_intermediate_size"]
        self.gate_proj = normal(count, inner, hidden, fan_in=hidden)
        self.up_proj = normal(count, inner, hidden, fan_in=hidden)
        self.down_proj = normal(count, hidden, inner, fan_in=inner / c["output_scale"] ** 2)

    def forward(self, x):
        """x [experts, rows, hidden], rows of zeros among them -> the same shape."""
        gate, up = (x @ torch.cat([self.gate_proj, self.up_proj], 1).mT).chunk(2, -1)
        return (silu(gate) * up) @ self.down_proj.mT


class Moe(nn.Module):
    """Sigmoid scores; the best experts of the best groups by score plus bias; weights from the
    scores alone. The bias follows the load (LongCat's and DeepSeek's balance without a loss)."""

    def __init__(self, c):
        super().__init__()
        self.top_k, self.groups, self.kept = c["num_experts_per_tok"], c["n_group"], c["topk_group"]
        self.scale = c["routed_scaling_factor"]
        self.gate = Linear(c["hidden_size"], c["num_experts"])
        self.gate.register_buffer("expert_bias", torch.zeros(c["num_experts"]))
        self.experts = Experts(c)
        shared = c["moe_shared_expert_intermediate_size"] * c["num_shared_experts"]
        self.shared_experts = Mlp(c["hidden_size"], shared, c["output_scale"])
        self.register_buffer("load", torch.zeros(c["num_experts"]), persistent=False)
        self.z_loss = 0.0  # of the last forward pass

    def forward(self, x):
        flat = x.flatten(0, 1)
        with torch.autocast(x.device.type, enabled=False):
            logits = linear(flat.float(), self.gate.weight.float())
        scores = torch.sigmoid(logits)
        with torch.no_grad():
            choice = (scores + self.gate.expert_bias).unflatten(-1, (self.groups, -1))
            best = choice.topk(2, -1).values.sum(-1).topk(self.kept, -1).indices
            closed = torch.ones(choice.shape[:2], dtype=torch.bool).scatter_(1, best, False)
            ids = (
                choice.masked_fill(closed[..., None], -1e9).flatten(1).topk(self.top_k, -1).indices
            )
            order = ids.flatten().argsort(stable=True)
            counts = torch.bincount(ids.flatten(), minlength=len(self.load))
            if self.training:
                self.load += counts
            # each expert's rows side by side, as many for each, in steps that keep shapes few
            room = (int(counts.max()) + ROOM_STEP - 1) // ROOM_STEP * ROOM_STEP
            first = counts.cumsum(0) - counts
            chosen = ids.flatten()[order]
            slot = chosen * room + torch.arange(len(order)) - first[chosen]
            source = torch.full((len(counts) * room,), len(flat)).scatter_(
                0, slot, order // self.top_k
            )
            place = torch.empty_like(order).scatter_(0, order, slot)
        weights = scores.gather(1, ids)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.scale
        self.z_loss = logits.logsumexp(-1).square().mean()
        rows = torch.cat([flat, flat.new_zeros(1, flat.shape[1])]).index_select(0, source)
        out = self.experts(rows.view(len(counts), room, -1)).flatten(0, 1).index_select(0, place)
        mixed = (out.view(*ids.shape, -1) * weights[..., None]).sum(1)
        return mixed.view(x.shape) + self.shared_experts(x)

    @torch.no_grad()
    def follow_load(self, rate):
        """Moves the bias towards even load, keeps its mean at zero, and starts counting anew."""
        bias = self.gate.expert_bias
        bias += rate * torch.sign(self.load.mean() - self.load)
        bias -= bias.mean()
        self.load.zero_()


class Layer(nn.Module):
    def __init__(self, c, mixer, moe):
        super().__init__()
        self.input_layernorm = RmsNorm(c["hidden_size"])
        self.attention = mixer(c)
        self.post_attention_layernorm = RmsNorm(c["hidden_size"])
        dense = (
            Mlp(c["hidden_size"], c["intermediate_size"], c["output_scale"]) if not moe else None
        )
        self.mlp = Moe(c) if moe else dense

    def forward(self, x, turn):
        x = x + self.attention(self.input_layernorm(x), turn)
        return x + self.mlp(self.post_attention_layernorm(x))


class MtpLayer(Layer):
    """Predicts the token after the next, from the model's last hidden state and the next token."""

    def __init__(self, c):
        super().__init__(c, Mla, moe=True)
        hidden = c["hidden_size"]
        self.enorm, self.hnorm = RmsNorm(hidden), RmsNorm(hidden)
        self.eh_proj, self.final_layernorm = Linear(2 * hidden, hidden), RmsNorm(hidden)

    def predict(self, embedded, hidden, turn):
        x = self.eh_proj(torch.cat([self.enorm(embedded), self.hnorm(hidden)], -1))
        return self.final_layernorm(self(x, turn))


class Backbone(nn.Module):
    def __init__(self, c):
        super().__init__()
        layers, group = c["num_hidden_layers"], c["layer_group_size"]
        self.word_embeddings = nn.Embedding(c["vocab_size"], c["hidden_size"])
        nn.init.normal_(self.word_embeddings.weight, std=0.5)
        self.layers = nn.ModuleList(
            Layer(c, Mla if (i + 1) % group == 0 else Kda, i >= c["first_k_dense_replace"])
            for i in range(layers)
        )
        self.layers.append(MtpLayer(c))
        self.norm = RmsNorm(c["hidden_size"])


class Nano(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = dict(config, output_scale=(2 * config["num_hidden_layers"]) ** -0.5)
        self.config, self.model = c, Backbone(c)
        self.lm_head = Linear(c["hidden_size"], c["vocab_size"], 0.5)

    def turn(self, length):
        return rotation(length, self.config["qk_rope_head_dim"], self.config["rope_theta"])

    def hidden(self, ids):
        """[batch, T] -> the hidden states behind the last norm."""
        x, turn = self.model.word_embeddings(ids), self.turn(ids.shape[1])
        for layer in self.model.layers[:-1]:
            x = layer(x, turn)
        return self.model.norm(x)

    def forward(self, ids):
        return self.lm_head(self.hidden(ids)).float()

    def moe_layers(self):
        return [layer.mlp for layer in self.model.layers if isinstance(layer.mlp, Moe)]
