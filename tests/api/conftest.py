"""A server for all tests of a session, on the tiny model stories260K with a chat template."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
import requests

MODEL = pathlib.Path(__file__).parents[2] / "../shared/models/stories260K"
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m.role | upper }}: {{ m.content }}\n{% endfor %}"
    "{% if tools %}TOOLS: {{ tools | length }}\n{% endif %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


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
    if not MODEL.exists():
        pytest.skip(f"{MODEL} is not there")
    folder = tmp_path_factory.mktemp("model") / "stories260K"
    shutil.copytree(MODEL, folder)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = CHAT_TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="session")
def server(model):
    server = Server(model, "--max-running-requests", "32")
    yield server
    assert server.stop() == 0
