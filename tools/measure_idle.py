#!/usr/bin/env python3
"""Measures what a server costs that has nothing to do.

    python tools/measure_idle.py BANYAN MODEL [--seconds 5] [--port 31877]

Starts `banyan serve` and prints, for spells without work, its processor time in clock ticks (of
utime and stime in /proc/PID/stat) and which of its threads woke: how often, and for how many
microseconds altogether.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import time


def process_ticks(pid):
    """utime + stime of the whole process, in clock ticks."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def thread_counts(pid):
    """{thread: (ns on a processor, context switches)}"""
    counts = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{thread}"
        with open(f"{folder}/schedstat") as file:
            running_ns = int(file.read().split()[0])
        with open(f"{folder}/status") as file:
            switches = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        counts[thread] = (running_ns, switches)
    return counts


def ask(port, method, path, body=None):
    """A connection whose answer can be read."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    text = json.dumps(body) if body else None
    connection.request(method, path, text, {"Content-Type": "application/json"})
    return connection, connection.getresponse()


def wait_until_ready(port, server):
    """Returns once /health is 200; ends the program if the server ends before."""
    for _ in range(1200):
        if server.poll() is not None:
            sys.exit(f"the server ended with {server.returncode}")
        try:
            if ask(port, "GET", "/health")[1].status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("the server was not ready within two minutes")


def measure(name, pid, seconds):
    """Prints what the process did in a spell that begins after half a second."""
    time.sleep(0.5)
    ticks, threads = process_ticks(pid), thread_counts(pid)
    time.sleep(seconds)
    now = thread_counts(pid)
    print(f"{name}: {process_ticks(pid) - ticks} ticks in {seconds:g} s")
    for thread, (running_ns, switches) in now.items():
        before = threads.get(thread, (0, 0))
        if switches > before[1]:
            print(f"  thread {thread}: {switches - before[1]} switches,"
                  f" {(running_ns - before[0]) / 1e3:.0f} us")


def measure_spells(port, pid, seconds):
    """One spell after each kind of work that ends."""
    completion = {"prompt": "Once", "max_tokens": 16}
    measure("before any request", pid, seconds)
    ask(port, "POST", "/v1/completions", completion)[1].read()
    measure("after a request", pid, seconds)
    kept, answer = ask(port, "GET", "/health")
    answer.read()
    measure("with an idle connection", pid, seconds)
    kept.close()
    cut, answer = ask(port, "POST", "/v1/completions",
                      {**completion, "max_tokens": 400, "stream": True})
    answer.read(100)
    cut.close()
    answer.close()
    measure("after a stream that was cut", pid, seconds)
    ask(port, "GET", "/metrics")[1].read()
    measure("after /metrics", pid, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("banyan")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--port", type=int, default=31877)
    options = parser.parse_args()
    server = subprocess.Popen([options.banyan, "serve", options.model, "--port",
                               str(options.port), "--log-level", "warn"])
    try:
        wait_until_ready(options.port, server)
        measure_spells(options.port, server.pid, options.seconds)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
