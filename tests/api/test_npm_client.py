"""The `openai` package of npm, where node and the package can be had."""

import pathlib
import shutil
import subprocess

import pytest

PACKAGE = "openai@6.49.0"


def test_npm_client(server, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not there")
    shutil.copy(pathlib.Path(__file__).parent / "client.mjs", tmp_path)
    install = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", PACKAGE],
                             cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    if install.returncode != 0:
        pytest.skip(f"npm cannot install {PACKAGE}: {install.stderr[-200:]}")
    done = subprocess.run(["node", "client.mjs", server.url], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.stdout == "ok\n", done.stdout + done.stderr
