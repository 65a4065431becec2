"""A server for all tests of a session, on the tiny model stories260K with a chat template."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
import requests

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from stories_model import copy_model  # noqa: E402: its folder is on the path from here on


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, model, *arguments):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [os.environ["BANYAN_PROGRAM"], "serve", "--model-path", str(model),
             "--port", str(self.port), "--served-model-name", "stories", *arguments])
        deadline = time.time() + 60
        while time.time() < deadline:
            assert self.process.poll() is None, "the server has ended"
            try:
                if requests.get(self.url + "/health", timeout=5).status_code == 200:
                    return
            except requests.ConnectionError:
                pass
            time.sleep(0.05)
        self.stop()
        raise TimeoutError("the server is not ready after a minute")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def post(self, path, body, **more):
        return requests.post(self.url + path, json=body, timeout=60, **more)

    def figures(self):
        """What /server_info says of the engine now."""
        return requests.get(self.url + "/server_info", timeout=60).json()["internal_states"][0]

    def counter(self, name):
        """The sum of a metric over its labels."""
        lines = requests.get(self.url + "/metrics", timeout=60).text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines
                   if line.startswith((name + "{", name + " ")))


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return copy_model(tmp_path_factory.mktemp("model") / "stories260K")


@pytest.fixture(scope="session")
def server(model):
    server = Server(model, "--max-running-requests", "32")
    yield server
    assert server.stop() == 0
