"""A server for all tests of a session, on the tiny model stories260K with a chat template."""

import pathlib
import sys

import pytest
import requests

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from serving import ServingProgram  # noqa: E402: its folder is on the path from here on
from stories_model import copy_model  # noqa: E402


class Server(ServingProgram):
    """With what the tests ask it over requests."""

    def post(self, path, body, **more):
        return requests.post(self.url + path, json=body, timeout=60, **more)

    def get(self, path):
        return requests.get(self.url + path, timeout=60).json()

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


class Router(Server):
    verb = "route"


def pytest_addoption(parser):
    parser.addoption("--through-router", action="store_true",
                     help="clients ask a `banyan route` above two servers")


@pytest.fixture(scope="session")
def server(model, request):
    name = ("--served-model-name", "stories")
    limit = ("--max-running-requests", "32")
    if not request.config.getoption("--through-router"):
        servers = [Server(model, *name, *limit)]
    else:
        servers = [Server(model, *name, *limit) for _ in range(2)]
        servers.append(Router(model, *name, "--worker-urls", *[s.url for s in servers]))
    yield servers[-1]
    assert [server.stop() for server in reversed(servers)] == [0] * len(servers)
