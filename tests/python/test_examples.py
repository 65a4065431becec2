"""The programs of examples/python run on a model, however little it knows."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/python"
PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "common.py")


def test_they_are_short():
    assert PROGRAMS
    for path in PROGRAMS:
        assert len(path.read_text().splitlines()) < 80, path


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_runs(path, model):
    done = subprocess.run([sys.executable, str(path), "--model-path", str(model)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout
