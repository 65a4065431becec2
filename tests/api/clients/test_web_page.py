"""The page at / in Chromium, where node, npm's playwright-core and axe-core and a Chromium are."""

import pathlib
import shutil
import subprocess

import pytest
from serving import ServingProgram

PACKAGES = ["playwright-core@1.65.1", "axe-core@4.14.1"]
NANO = pathlib.Path(__file__).parents[3] / "models" / "banyan-nano"


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return pytest.skip("there is no Chromium (Debian: apt-get install chromium)")


def test_page_in_a_browser(tmp_path):
    browser = chromium()
    if shutil.which("npm") is None:
        pytest.skip("npm is not there")
    for name in ("page.mjs", "page_browser.mjs"):
        shutil.copy(pathlib.Path(__file__).parent / name, tmp_path)
    install = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES],
                             cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    if install.returncode != 0:
        pytest.skip(f"npm cannot install {PACKAGES}: {install.stderr[-200:]}")
    server = ServingProgram(NANO, "--expert-counts")
    try:
        done = subprocess.run(["node", "page.mjs", server.url, browser], cwd=tmp_path,
                              capture_output=True, text=True, timeout=120, check=False)
    finally:
        server.stop()
    assert done.stdout == "ok\n", done.stdout + done.stderr
