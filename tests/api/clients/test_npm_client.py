"""Clients from npm, where node and the packages can be had."""

import pathlib
import shutil
import subprocess

import pytest

OPENAI = "openai@6.49.0"
SCRIPTS = {
    "client.mjs": [OPENAI],
    "zod.mjs": [OPENAI, "zod@4.1.12"],
    "anthropic.mjs": ["@anthropic-ai/sdk@1.12.0"],
    "ollama.mjs": ["ollama@0.6.4"],
    "ai.mjs": ["ai@7.0.173", "@ai-sdk/openai@4.0.118"],
}


@pytest.mark.parametrize("script, packages", SCRIPTS.items())
def test_npm_client(server, tmp_path, script, packages):
    if shutil.which("npm") is None:
        pytest.skip("npm is not there")
    shutil.copy(pathlib.Path(__file__).parent / script, tmp_path)
    install = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", *packages],
                             cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    if install.returncode != 0:
        pytest.skip(f"npm cannot install {packages}: {install.stderr[-200:]}")
    done = subprocess.run(["node", script, server.url], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.stdout == "ok\n", done.stdout + done.stderr
