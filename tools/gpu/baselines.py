#!/usr/bin/env python3
"""tools/gpu/baselines.py: how fast torch is on a GPU, at what gpu_bench measures: products by
cuBLAS and attention by scaled_dot_product_attention. Needs torch with CUDA.

Each time is of one call among twenty of one CUDA graph, the median of five. Weights and keys are
random normal numbers. Products have more weights than a cache holds; keys of one sequence stay in
the cache, as in gpu_bench. x is bf16, where gpu_bench rounds f32.
"""

import sys

try:
    import torch
    import torch.nn.functional as functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    sys.exit(f"tools/gpu/baselines.py: {error}")

CALLS = 20
BEYOND_CACHES = 256 << 20


def normal(*shape, scale=1.0):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * scale


def milliseconds(call):
    """Of call(i), for i in range(CALLS)."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(CALLS):
            call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(CALLS):
            call(i)
    times = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / CALLS)
    return sorted(times)[2]


def report(what, ms, bytes_read, operations):
    print(
        f"{what:44} {ms * 1e3:9.1f} us  {bytes_read / ms * 1e-6:6.0f} GB/s  "
        f"{operations / ms * 1e-9:6.1f} TFLOP/s",
        flush=True,
    )


def product(n, k, rows):
    copies = BEYOND_CACHES // (2 * n * k) + 1
    weights = [normal(n, k, scale=0.02) for _ in range(min(copies, CALLS))]
    x = normal(rows, k)
    ms = milliseconds(lambda i: functional.linear(x, weights[i % len(weights)]))
    report(f"product {n} x {k}, {rows} rows", ms, 2 * n * k + 2 * rows * (n + k), 2 * rows * n * k)


def attention(what, sequences, rows, past):
    heads, kv_heads, dim, keys = 32, 8, 128, past + rows
    q = normal(sequences, heads, rows, dim)
    k, v = (normal(sequences, kv_heads, keys, dim) for _ in range(2))
    causal = rows > 1  # only without keys before them: the mask is that of the first keys
    seen = sequences * rows * (past + (rows + 1) / 2)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        name = f"{what}, {backend.name.split('_')[0].lower()}"
        try:
            with sdpa_kernel(backend):
                ms = milliseconds(
                    lambda i: functional.scaled_dot_product_attention(
                        q, k, v, is_causal=causal, enable_gqa=True
                    )
                )
        except Exception as error:  # a backend that this torch or GPU lacks
            print(f"{name}: {str(error).splitlines()[0]}")
            continue
        report(name, ms, 4 * sequences * keys * kv_heads * dim, 4 * seen * heads * dim)


def main():
    if not torch.cuda.is_available():
        sys.exit("tools/gpu/baselines.py: torch sees no CUDA device")
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}")
    for n, k in ((6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288)):
        for rows in (1, 8, 16, 32, 64, 128, 256, 2048, 8192):
            product(n, k, rows)
    attention("attention, 1 sequence after 1,024", 1, 1, 1024)
    attention("attention, 1 sequence after 32,768", 1, 1, 32768)
    attention("attention, 64 sequences after 1,024", 64, 1, 1024)
    attention("attention, 256 sequences after 1,024", 256, 1, 1024)
    attention("attention, a prompt of 8,192", 1, 8192, 0)


if __name__ == "__main__":
    main()
