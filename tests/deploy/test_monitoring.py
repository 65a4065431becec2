"""The board of Grafana and the file of Prometheus against what /metrics says, and the names under
which gateways of the Gateway API inference extension look for a model server's figures."""

import json
import re
import urllib.request

import pytest
import yaml
from serving import ask

PROMETHEUS_OWN = {"up"}  # made where it is scraped
LABELS_OF_SCRAPING = {"job", "instance"}


def series_of(url):
    """Of each metric: its type and the names of its labels."""
    with urllib.request.urlopen(url + "/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = {}
    for line in text.splitlines():
        sample = re.match(r"([\w:]+)(?:\{(.*)\})? (\S+)$", line)
        if sample:
            found.setdefault(sample[1], []).append(
                (dict(re.findall(r'(\w+)="(.*?)"', sample[2] or "")), float(sample[3])))
    return found


@pytest.fixture(scope="module")
def figures(start_worker, start_router, tmp_path_factory):
    """By job, what a worker with a store and a router say after a request."""
    store = tmp_path_factory.mktemp("store")
    worker = start_worker("--hicache-storage-backend", "disk", "--hicache-storage-dir", str(store),
                          "--hicache-storage-size", "1")
    router = start_router([worker])
    ask(router.url)
    figures = {"banyan-worker": series_of(worker.url), "banyan-router": series_of(router.url)}
    assert [router.stop(), worker.stop()] == [0, 0]
    return figures


@pytest.fixture(scope="module")
def board(packaging):
    return json.loads((packaging / "monitoring/grafana.json").read_text())


def test_every_query_finds_its_metric_and_labels(board, figures):
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    assert len(queries) > 30
    for query in queries:
        grouped = {label for group in re.findall(r"by \(([^)]*)\)", query)
                   for label in group.split(", ")}
        chosen = re.findall(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}", query)
        assert chosen, query
        for metric, matchers in chosen:
            job = re.search('job="([^"]*)"', matchers)[1]
            if metric in PROMETHEUS_OWN:
                continue
            assert metric in figures[job], f"{job} has no {metric}"
            known = {label for labels, _ in figures[job][metric] for label in labels}
            asked = set(re.findall(r"(\w+)[=!]", matchers)) | grouped
            assert asked <= known | LABELS_OF_SCRAPING, (query, known)


def test_panels_lie_side_by_side_and_say_what_they_show(board):
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["title"] and (panel["type"] == "row" or panel["targets"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_prometheus_asks_the_jobs_of_the_board(packaging, board):
    jobs = {job["job_name"] for job in
            yaml.safe_load((packaging / "monitoring/prometheus.yml").read_text())["scrape_configs"]}
    assert set(re.findall(r'job=\\"([\w-]+)\\"', json.dumps(board))) <= jobs

def test_a_picker_of_a_gateway_finds_its_figures(figures):
    """Names of the model server protocol, as vLLM and as SGLang have them; all are gauges."""
    worker = figures["banyan-worker"]
    for name in ["vllm:num_requests_waiting", "vllm:num_requests_running",
                 "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:num_queue_reqs",
                 "sglang:num_running_reqs", "sglang:token_usage"]:
        (labels, value), = worker[name]
        assert labels.keys() == {"model_name"} and value >= 0, name
    (vllm, one), = worker["vllm:cache_config_info"]
    (sglang, _), = worker["sglang:cache_config_info"]
    assert one == 1 and int(vllm["block_size"]) == int(sglang["page_size"]) > 0
    assert int(vllm["num_gpu_blocks"]) == int(sglang["num_pages"]) > 0
    (adapters, at), = worker["vllm:lora_requests_info"]
    assert at > 1.7e9  # seconds since 1970
    assert {name: adapters[name] for name in adapters if name != "model_name"} == {
        "max_lora": "0", "running_lora_adapters": "", "waiting_lora_adapters": ""}
