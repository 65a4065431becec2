"""Units that systemd takes without a word, and whose commands start with the files beside them."""

import re
import subprocess

import pytest
import yaml
from serving import ask, free_port, wait_ready

UNITS = ["banyan.service", "banyan-worker@.service", "banyan-route.service"]


def command_of(unit, program, credentials, **values):
    """The words of a unit's ExecStart, with what systemd would put in."""
    line = re.search("^ExecStart=(.*)$", unit.read_text(), re.M)[1]
    line = line.replace("/usr/bin/banyan", program)
    line = line.replace("${CREDENTIALS_DIRECTORY}", str(credentials))
    for name, value in values.items():
        line = line.replace(f"%{name}", value)
    assert "%" not in line and "$" not in line
    return line.split()


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_every_line(packaging, program, find, tmp_path, name):
    text = (packaging / "systemd" / name).read_text().replace("/usr/bin/banyan", program)
    unit = tmp_path / name.replace("@", "@30001")
    unit.write_text(text)
    done = subprocess.run([find("systemd-analyze"), "verify", "--man=no", unit],
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", UNITS[1:])
def test_a_unit_gives_a_service_little(packaging, find, name, tmp_path):
    unit = tmp_path / name.replace("@", "@30001")
    unit.write_text((packaging / "systemd" / name).read_text())
    done = subprocess.run([find("systemd-analyze"), "security", "--offline=true", "--no-pager",
                           "--threshold=35", unit], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


def test_the_commands_start_with_the_options_beside_them(packaging, program, nano, tmp_path):
    """As shipped: two workers, a router that knows their key, and one answer through it."""
    ports = [str(free_port()) for _ in range(3)]
    for name in ["worker.yaml", "route.yaml"]:
        text = (packaging / "systemd" / name).read_text()
        text = text.replace("/usr/share/banyan/models/banyan-nano", nano)
        for shipped, free in zip(["30001", "30002", "30000"], ports):
            text = text.replace(shipped, free)
        (tmp_path / name).write_text(text)
    with (tmp_path / "worker.yaml").open("a") as options:
        options.write("max-total-tokens: 65536\n")
    workers, router = packaging / "systemd" / UNITS[1], packaging / "systemd" / UNITS[2]
    commands = [command_of(workers, program, tmp_path, i=port) for port in ports[:2]]
    commands.append(command_of(router, program, tmp_path))
    processes = [subprocess.Popen(command) for command in commands]
    try:
        for process, port in zip(processes, ports):
            wait_ready(process, f"http://127.0.0.1:{port}")
        assert ask(f"http://127.0.0.1:{ports[2]}")
    finally:
        for process in processes:
            process.terminate()
        assert [process.wait(30) for process in processes] == [0] * 3


def test_the_keys_of_router_and_workers_are_one(packaging):
    worker, route = (yaml.safe_load((packaging / "systemd" / name).read_text())
                     for name in ["worker.yaml", "route.yaml"])
    assert worker["api-key"] == route["worker-api-key"]
    assert worker["model"] == route["model"]
