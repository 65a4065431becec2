"""Manifests: against Kubernetes' own schemas, against each other, and as far as they run a program.

Schemas come from the package kubernetes-validate; those of custom resources are written here, from
the documentation of the Gateway API and its inference extension, for the fields that are used.
"""

import copy
import json
import re
import subprocess

import jsonschema
import kubernetes_validate
import pytest
import yaml
from serving import ask, free_port, wait_ready

PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 253}


def closed(required=(), **properties):
    """The schema of an object with these members and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False,
            "required": list(required)}


NUMBERED = closed(["number"], number=PORT)
CUSTOM = {
    "InferencePool": closed(
        ["selector", "targetPorts", "endpointPickerRef"],
        selector=closed(["matchLabels"], matchLabels={"type": "object", "minProperties": 1}),
        targetPorts={"type": "array", "items": NUMBERED, "minItems": 1, "maxItems": 8},
        appProtocol={"enum": ["http", "kubernetes.io/h2c"]},
        endpointPickerRef=closed(["name", "port"], name=NAME, port=NUMBERED,
                                 failureMode={"enum": ["FailOpen", "FailClose"]})),
    "HTTPRoute": closed(
        ["parentRefs", "rules"],
        parentRefs={"type": "array", "items": closed(["name"], name=NAME)},
        rules={"type": "array", "items": closed(
            ["backendRefs"],
            backendRefs={"type": "array", "items": closed(
                ["group", "kind", "name"], group={"const": "inference.networking.k8s.io"},
                kind={"const": "InferencePool"}, name=NAME)},
            timeouts=closed(request={"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms))+$"}))}),
}


def documents(folder):
    """All resources of a kustomization and of what it names, with its patches."""
    settings = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found = []
    for name in settings["resources"]:
        path = folder / name
        found += documents(path) if path.is_dir() else yaml.safe_load_all(path.read_text())
    for patch in settings.get("patches", []):
        targets = [one for one in found if one["kind"] == patch["target"]["kind"]
                   and one["metadata"]["name"] == patch["target"]["name"]]
        assert len(targets) == 1
        for change in yaml.safe_load(patch["patch"]):
            apply(targets[0], **change)
    return found


def apply(document, op, path, value=None):
    """One change of a JSON patch."""
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")[1:]]
    for step in way:
        document = document[step]
    if op == "test":
        assert document[last] == value, path
    elif op == "remove":
        del document[last]
    else:
        assert op == "add" and isinstance(document, dict)
        document[last] = value


@pytest.fixture(scope="module", params=["cell", "gateway"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def resources(packaging, name):
    return documents(packaging / "kubernetes" / name)


def named(resources, kind, name):
    found = [one for one in resources if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, f"{kind} {name}"
    return found[0]


def pods_of(resources):
    return {one["metadata"]["name"]: one["spec"]["template"] for one in resources
            if one["kind"] in ("StatefulSet", "Deployment")}


# 1.30 is the first that can sleep before it ends a container.
@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_every_resource_follows_its_schema(resources, version):
    for one in resources:
        if one["kind"] in CUSTOM:
            jsonschema.validate(one["spec"], CUSTOM[one["kind"]])
        else:
            kubernetes_validate.validate(one, version, strict=True)


def test_a_misspelt_member_is_found(resources):
    wrong = copy.deepcopy(named(resources, "StatefulSet", "banyan-worker"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.37", strict=True)


def selects(selector, labels):
    return selector.items() <= labels.items()


def test_what_names_something_names_something_there(resources):
    pods = pods_of(resources)
    labels = {name: pod["metadata"]["labels"] for name, pod in pods.items()}
    for one in resources:
        spec, kind = one.get("spec", {}), one["kind"]
        if kind in ("StatefulSet", "Deployment", "PodDisruptionBudget", "InferencePool"):
            chosen = [n for n in pods if selects(spec["selector"]["matchLabels"], labels[n])]
            assert len(chosen) == 1, one["metadata"]
        if kind == "HorizontalPodAutoscaler":
            named(resources, spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"])
        if kind == "Service":
            pod = spec["selector"].get("statefulset.kubernetes.io/pod-name", "")
            own = re.sub(r"-\d+$", "", pod)
            assert own in pods or any(selects(spec["selector"], ls) for ls in labels.values())
        if kind == "InferencePool":
            container = pods["banyan-worker"]["spec"]["containers"][0]
            assert spec["targetPorts"][0]["number"] == container["ports"][0]["containerPort"]


def test_keys_and_configuration_are_where_containers_look(resources):
    config = named(resources, "ConfigMap", "banyan")["data"]
    for pod in pods_of(resources).values():
        container, volumes = pod["spec"]["containers"][0], pod["spec"]["volumes"]
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in volumes}
        variables = {one["name"] for one in container["env"]}
        assert set(re.findall(r"\$\((\w+)\)", " ".join(container["args"]))) <= variables
        for one in container["env"]:
            reference = one.get("valueFrom", {}).get("configMapKeyRef")
            assert reference is None or reference["key"] in config
        files = {f"{mount['mountPath']}/{item['path']}" for mount in container["volumeMounts"]
                 for volume in volumes if volume["name"] == mount["name"]
                 for item in volume.get("secret", {}).get("items", [])}
        asked = re.findall(r"--api-key-file=(\S+)", " ".join(container["args"]))
        assert set(asked) == files
        drain = int(re.search(r"--drain-timeout=(\d+)", " ".join(container["args"]))[1])
        hook = container.get("lifecycle", {"preStop": {"sleep": {"seconds": 0}}})["preStop"]
        assert drain + hook["sleep"]["seconds"] < pod["spec"]["terminationGracePeriodSeconds"]


def test_routers_know_as_many_workers_as_there_may_be(packaging):
    resources = documents(packaging / "kubernetes/cell")
    args = pods_of(resources)["banyan-router"]["spec"]["containers"][0]["args"]
    urls = re.findall(r"--worker-urls=http://([\w-]+):(\d+)", " ".join(args))
    scaler = named(resources, "HorizontalPodAutoscaler", "banyan-worker")["spec"]
    assert len(urls) == scaler["maxReplicas"]
    for service, port in urls:
        spec = named(resources, "Service", service)["spec"]
        assert str(spec["ports"][0]["port"]) == port
        assert spec["selector"]["statefulset.kubernetes.io/pod-name"] == service


def command_of(pod, values):
    container = pod["spec"]["containers"][0]
    words = container["command"] + container["args"]
    for old, new in values.items():
        words = [word.replace(old, new) for word in words]
    return words


def test_the_containers_commands_serve(packaging, program, nano, tmp_path):
    """A worker and a router as in the cell, each on a port of its own."""
    pods = pods_of(documents(packaging / "kubernetes/cell"))
    ports = [str(free_port()) for _ in range(2)]
    for kind in ["clients", "workers"]:
        (tmp_path / kind).write_text(f"key-of-{kind}")
    values = {"$(MODEL)": nano, "$(SERVED_MODEL_NAME)": "nano", "$(THREADS)": "1",
              "$(WORKER_KEY)": "key-of-workers", "/etc/banyan/keys": str(tmp_path),
              "0.0.0.0": "127.0.0.1"}
    for i in range(4):  # the first worker is there, the others are not
        values[f"http://banyan-worker-{i}:30000"] = f"http://127.0.0.1:{i or ports[0]}"
    words = [command_of(pods[name], {**values, "--port=30000": f"--port={port}"})
             for name, port in zip(["banyan-worker", "banyan-router"], ports)]
    words[0] += ["--max-total-tokens", "65536"]
    processes = [subprocess.Popen([program, *command[1:], "--log-level", "warn"])
                 for command in words]
    try:
        for process, port in zip(processes, ports):
            wait_ready(process, f"http://127.0.0.1:{port}")
        assert ask(f"http://127.0.0.1:{ports[1]}", key="key-of-clients")
    finally:
        for process in processes:
            process.terminate()
        assert [process.wait(60) for process in processes] == [0, 0]


def test_kustomize_builds_them(packaging, find, name):
    done = subprocess.run([find("kustomize"), "build", packaging / "kubernetes" / name],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    expected = documents(packaging / "kubernetes" / name)
    assert sorted((one["kind"], one["metadata"]["name"]) for one in built) == sorted(
        (one["kind"], one["metadata"]["name"]) for one in expected)
    images = re.findall(r"image: (\S+)", done.stdout)
    assert images and all(":" in image for image in images), json.dumps(images)
