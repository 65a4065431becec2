"""SGLang's bench_serving, unchanged."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("backend", ["sglang", "sglang-oai", "vllm", "sglang-oai-chat"])
def test_bench_serving(server, model, tmp_path, backend):
    output = tmp_path / "result.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "sglang.bench_serving", "--backend", backend,
         "--base-url", server.url, "--model", "stories", "--tokenizer", str(model),
         "--dataset-name", "random-ids", "--num-prompts", "20", "--random-input-len", "32",
         "--random-output-len", "16", "--random-range-ratio", "1", "--max-concurrency", "8",
         "--disable-tqdm", "--output-file", str(output)],
        env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=120,
        check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(output.read_text().splitlines()[-1])
    assert figures["completed"] == 20, done.stdout
    assert figures["total_output_tokens"] == 320
    assert figures["mean_ttft_ms"] > 0
