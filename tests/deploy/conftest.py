"""Workers and routers of banyan-nano for the tests of packaging/, and what all of them need."""

import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from serving import ServingProgram  # noqa: E402: its folder is on the path from here on


SMALL = ["--max-total-tokens", "65536"]  # several workers share this machine's memory


class Router(ServingProgram):
    verb = "route"


@pytest.fixture(scope="session")
def packaging():
    return ROOT / "packaging"


@pytest.fixture(scope="session")
def program():
    return os.environ["BANYAN_PROGRAM"]


@pytest.fixture(scope="session")
def nano():
    return str(ROOT / "models/banyan-nano")


@pytest.fixture(scope="session")
def find():
    """The path of a program; the test is skipped where there is none."""
    def path_of(name):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"there is no {name}")
        return path
    return path_of


@pytest.fixture(scope="session")
def start_worker(nano):
    return lambda *options: ServingProgram(nano, *SMALL, "--threads", "1", "--state-digest",
                                           "--log-level", "warn", *options)


@pytest.fixture(scope="session")
def start_router(nano):
    return lambda workers, *options, port=None: Router(
        nano, "--log-level", "warn", *options, "--worker-urls",
        *[worker.url for worker in workers], port=port)
