"""`banyan serve` beside the tests in Python, as BANYAN_PROGRAM."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_ready(process, url, seconds=60):
    """Until /health is a success; TimeoutError after `seconds`."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        assert process.poll() is None, f"the server of {url} has ended"
        try:
            with urllib.request.urlopen(url + "/health", timeout=5):
                return
        except OSError:  # a status that is no success, too
            time.sleep(0.05)
    raise TimeoutError(f"{url} is not ready after {seconds} s")


def ask(url, prompt="Once", tokens=4, key="", context=None):
    """The text of a completion."""
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return json.load(answer)["choices"][0]["text"]


class ServingProgram:
    """A server that is ready."""

    verb = "serve"

    def __init__(self, model, *arguments, port=None):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [os.environ["BANYAN_PROGRAM"], self.verb, "--model-path", str(model),
             "--port", str(self.port), *arguments])
        try:
            wait_ready(self.process, self.url)
        except TimeoutError:
            self.stop()
            raise

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def kill(self):
        """As a crash ends it."""
        self.process.kill()
        self.process.wait()
