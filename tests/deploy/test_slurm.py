"""The job script: checked as a script, and run with a stand-in for Slurm's `srun`."""

import os
import signal
import socket
import subprocess
import time

import pytest
from serving import ask, free_port, wait_ready

# Two tasks of one node, each in a process of its own, that get the signal that srun would pass on.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
tasks=()
for task in 0 1; do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" &
  tasks+=($!)
done
trap 'kill -TERM "${tasks[@]}"; wait; exit 0' TERM
wait
"""
HOSTNAME = "#!/bin/sh\necho 127.0.0.1\n"


@pytest.fixture
def script(packaging):
    return packaging / "slurm/banyan.sbatch"


def test_no_fault_is_found_in_the_script(script, find):
    done = subprocess.run([find("shellcheck"), script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def free_pair():
    """A free port whose next one is free too."""
    while True:
        port = free_port()
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def workers_of(folder):
    """The workers of a job."""
    found = subprocess.run(["pgrep", "-f", f"serve .*--api-key-file {folder}"],
                           capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def test_a_job_serves_survives_a_worker_and_drains(script, program, nano, tmp_path):
    for name, text in [("srun", SRUN), ("hostname", HOSTNAME)]:
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    port = free_port()
    job = subprocess.Popen(
        ["bash", script, nano, "--port", str(port), "--health-check-timeout-secs", "1"],
        cwd=tmp_path, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}",
                           "BANYAN": program, "WORKER_PORT": str(free_pair()), "SLURM_JOB_ID": "7",
                           "SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": "2",
                           "SLURM_CPUS_PER_TASK": "1",
                           "WORKER_OPTIONS": "--max-total-tokens 65536 --log-level warn"})
    folder, url = tmp_path / "banyan-7", f"http://127.0.0.1:{port}"
    try:
        wait_ready(job, url)
        assert (folder / "key").stat().st_mode & 0o077 == 0
        expected = ask(url)
        first = workers_of(folder)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        assert ask(url) == expected  # the other one answers
        end = time.time() + 30
        while len(workers_of(folder)) < 2 and time.time() < end:
            time.sleep(0.1)
        assert len(workers_of(folder)) == 2  # it was started again
    finally:
        job.terminate()
        status = job.wait(60)
    assert (status, workers_of(folder), folder.exists()) == (0, [], False)
