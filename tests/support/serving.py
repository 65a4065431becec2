"""`banyan serve` beside the tests in Python, as BANYAN_PROGRAM."""

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


class ServingProgram:
    """A server that is ready."""

    verb = "serve"

    def __init__(self, model, *arguments):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [os.environ["BANYAN_PROGRAM"], self.verb, "--model-path", str(model),
             "--port", str(self.port), *arguments])
        deadline = time.time() + 60
        while time.time() < deadline:
            assert self.process.poll() is None, "the server has ended"
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5):
                    return
            except OSError:  # a status that is no success, too
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

    def kill(self):
        """As a crash ends it."""
        self.process.kill()
        self.process.wait()
