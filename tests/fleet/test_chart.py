"""The Helm chart, rendered by Helm and checked against Kubernetes' own schemas.

Without a cluster: what KubeRay, KEDA and the Prometheus Operator make of their resources is not
tested, but for what Ray Serve itself is told.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from realtime_tts.cli import command_parser
from realtime_tts.fleet.ray_replica import ReplicaConfig

CHART = Path(__file__).parents[2] / "deploy/helm/realtime-tts"
HELM = shutil.which("helm", path=f"{Path(sys.executable).parent}") or shutil.which("helm")
LACKING = [name for name in ("yaml", "kubernetes_validate") if find_spec(name) is None]
KUBERNETES = "1.34"
OTHERS = {
    "ray.io/v1",
    "keda.sh/v1alpha1",
    "monitoring.coreos.com/v1",
    "monitoring.coreos.com/v1alpha1",
}
NEEDED = {"image.repository": "registry.example/tts", "image.tag": "1"}
EVERYTHING = {
    "keysSecret": "keys",
    "ingress.tlsSecret": "certificate",
    "models.existingClaim": "models",
    "voices.existingClaim": "voices",
    "gpus": "2",
    "imagePullSecrets[0].name": "registry",
    "serviceAccountName": "speaker",
    "env[0].name": "HF_TOKEN",
    "env[0].value": "secret",
    "ingress.externalTrafficPolicy": "Local",
    "networkPolicy.enabled": "true",
}

NO_LIMITS = {"resources.requests": "null", "resources.limits": "null"}

pytestmark = [
    pytest.mark.skipif(not HELM, reason="Helm is missing: python tools/helm.py"),
    pytest.mark.skipif(bool(LACKING), reason=f"{LACKING} are missing: make test-fleet has them"),
]


def rendered(mode: str, **values: str) -> list[dict[str, Any]]:
    import yaml

    needed = NEEDED | ({"ray.tokenSecret": "token"} if mode == "ray" else {})
    done = helm(mode, **needed | values)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def helm(mode: str, **values: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    flags = [f"--set={name}={value}" for name, value in ({"mode": mode} | values).items()]
    command = [HELM, "template", "speech", str(CHART), *flags]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def one(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = [d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name]
    return found


def pods(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The templates of pods in a resource."""
    spec = document["spec"]
    if document["kind"] == "RayService":
        cluster = spec["rayClusterConfig"]
        groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
        return [group["template"] for group in groups]
    return [spec["template"]] if "template" in spec else []


@pytest.mark.parametrize(
    "values", [{}, EVERYTHING, NO_LIMITS], ids=["defaults", "everything", "no limits"]
)
@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_every_resource_is_valid(mode: str, values: dict[str, str]) -> None:
    import kubernetes_validate

    documents = rendered(mode, **values)
    for document in documents:
        if document["apiVersion"] not in OTHERS:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        for template in pods(document):
            pod = {"apiVersion": "v1", "kind": "Pod", **template}
            pod["spec"] = {"restartPolicy": "Always"} | pod["spec"]
            kubernetes_validate.validate(pod, KUBERNETES, strict=True)
            volumes = {volume["name"] for volume in pod["spec"].get("volumes", ())}
            for container in pod["spec"]["containers"]:
                mounts = {mount["name"] for mount in container.get("volumeMounts", ())}
                assert mounts <= volumes
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(set(names)) == len(names)


def test_a_wrong_field_is_found() -> None:
    import kubernetes_validate

    (service, *_) = [d for d in rendered("deployment") if d["kind"] == "Service"]
    service["spec"]["portz"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, KUBERNETES, strict=True)


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_our_commands_take_the_arguments(mode: str) -> None:
    for document in rendered(mode, **EVERYTHING):
        for template in pods(document):
            for container in template["spec"]["containers"]:
                if container.get("command", [""])[0] == "realtime-tts":
                    words = [*container["command"][1:], *container["args"]]
                    command_parser(words).parse_args(words)


def test_a_pod_is_given_the_time_that_its_drain_takes() -> None:
    documents = rendered("deployment", drainSeconds="300")
    server = one(documents, "Deployment", "speech-servers")["spec"]["template"]["spec"]
    arguments = server["containers"][0]["args"]
    assert "--drain-seconds=300" in arguments
    assert server["terminationGracePeriodSeconds"] >= 300 + 5
    (ray,) = [d for d in rendered("ray", drainSeconds="300") if d["kind"] == "RayService"]
    assert pods(ray)[1]["spec"]["terminationGracePeriodSeconds"] >= 300
    assert ray["spec"]["rayClusterDeletionDelaySeconds"] >= 300


def test_a_rollout_has_failed_only_after_a_drain_and_a_start() -> None:
    documents = rendered("deployment", drainSeconds="300", startSeconds="1800")
    server = one(documents, "Deployment", "speech-servers")["spec"]
    assert server["progressDeadlineSeconds"] > 300 + 1800


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_pods_meet_the_restricted_pod_security_standard(mode: str) -> None:
    for template in (pod for document in rendered(mode) for pod in pods(document)):
        of_pod = template["spec"]["securityContext"]
        assert of_pod["runAsNonRoot"] is True
        assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in template["spec"]["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            if container["name"] in {"server", "haproxy"}:
                assert context["readOnlyRootFilesystem"] is True
                written = {mount["mountPath"] for mount in container["volumeMounts"]}
                given = {one["name"]: one.get("value", "") for one in container.get("env", ())}
                kept = {given[name] for name in ("HOME", "XDG_DATA_HOME") if name in given}
                assert {"/tmp"} | kept <= written


def test_who_has_no_token_reaches_nothing_of_ray() -> None:
    lacking = helm("ray", **NEEDED)
    assert "ray.tokenSecret" in lacking.stderr
    documents = rendered("ray")
    (ray,) = [d for d in documents if d["kind"] == "RayService"]
    wanted = {"mode": "token", "secretName": "token"}
    assert ray["spec"]["rayClusterConfig"]["authOptions"] == wanted
    (ingress,) = pods(one(documents, "Deployment", "speech-ingress"))
    (members,) = [c for c in ingress["spec"]["containers"] if c["name"] == "members"]
    from_secret = {"secretKeyRef": {"name": "token", "key": "auth_token"}}
    assert {"name": "RAY_AUTH_MODE", "value": "token"} in members["env"]
    assert {"name": "RAY_AUTH_TOKEN", "valueFrom": from_secret} in members["env"]


def test_a_mode_that_does_not_exist_is_an_error() -> None:
    refused = helm("deploymant", **NEEDED)
    assert refused.returncode != 0 and 'deployment or ray, got "deploymant"' in refused.stderr


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_servers_have_what_the_values_name(mode: str) -> None:
    for template in (pod for document in rendered(mode, **EVERYTHING) for pod in pods(document)):
        assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        if template["metadata"]["labels"]["app.kubernetes.io/component"] == "server":
            assert template["spec"]["serviceAccountName"] == "speaker"
            environment = template["spec"]["containers"][0]["env"]
            assert {"name": "HF_TOKEN", "value": "secret"} in environment


def test_pods_that_are_selected_have_the_labels() -> None:
    for mode in ("deployment", "ray"):
        documents = rendered(mode)
        labels = [pod["metadata"]["labels"] for document in documents for pod in pods(document)]
        for document in documents:
            if document["kind"] in {"Service", "PodDisruptionBudget"}:
                selector = document["spec"]["selector"]
                wanted = selector.get("matchLabels", selector).items()
                assert any(wanted <= found.items() for found in labels), document["metadata"]


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_the_image_s_user_can_write_to_the_volumes(mode: str) -> None:
    """A new volume is root's. Kubernetes gives it to a group, and the group to the server."""
    for document in rendered(mode, **EVERYTHING):
        for template in pods(document):
            if template["metadata"]["labels"]["app.kubernetes.io/component"] == "server":
                assert template["spec"]["securityContext"]["fsGroup"] > 0


def test_a_certificate_that_is_renewed_reaches_the_ingress() -> None:
    """HAProxy is given the Secret's own files, which Kubernetes changes; a copy would expire."""
    documents = rendered("deployment", **{"ingress.tlsSecret": "certificate"})
    pod = one(documents, "Deployment", "speech-ingress")["spec"]["template"]["spec"]
    assert "initContainers" not in pod
    (haproxy,) = pod["containers"]
    assert {"--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key"} <= set(haproxy["args"])
    (mount,) = (each for each in haproxy["volumeMounts"] if each["mountPath"] == "/tls")
    (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
    assert volume["secret"] == {"secretName": "certificate"} and "subPath" not in mount


def test_the_alerts_know_the_servers_by_their_job() -> None:
    documents = rendered("deployment")
    monitor = one(documents, "ServiceMonitor", "speech-servers")["spec"]
    servers = one(documents, "Service", "speech-servers")["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= servers.items()
    job = servers[monitor["jobLabel"]]
    assert f'up{{job="{job}"}}' in (CHART.parents[1] / "prometheus/alerts.yml").read_text("utf-8")


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_prometheus_shows_its_key_where_there_is_one(mode: str) -> None:
    for values, key in (({}, None), ({"keysSecret": "keys"}, "keys")):
        kind = "ScrapeConfig" if mode == "ray" else "ServiceMonitor"
        spec = one(rendered(mode, **values), kind, "speech-servers")["spec"]
        scrape = spec if mode == "ray" else spec["endpoints"][0]
        found = scrape.get("authorization", {"credentials": {"name": None}})
        assert found["credentials"]["name"] == key


def test_prometheus_asks_the_ingress_which_servers_of_ray_there_are() -> None:
    documents = rendered("ray")
    scrape = one(documents, "ScrapeConfig", "speech-servers")["spec"]
    (asked,) = scrape["httpSDConfigs"]
    service = one(documents, "Service", "speech-targets")["spec"]
    (port,) = service["ports"]
    assert asked["url"] == f"http://speech-targets.default.svc:{port['port']}/"
    pod = one(documents, "Deployment", "speech-ingress")["spec"]["template"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    haproxy = pod["spec"]["containers"][0]
    (number,) = [p["containerPort"] for p in haproxy["ports"] if p["name"] == port["targetPort"]]
    assert f"--targets-bind=*:{number}" in haproxy["args"]
    (label,) = scrape["relabelings"]
    alerts = (CHART.parents[1] / "prometheus/alerts.yml").read_text("utf-8")
    assert f'up{{{label["targetLabel"]}="{label["replacement"]}"}}' in alerts


def test_haproxy_finds_the_servers_in_a_cluster_with_a_domain_of_its_own() -> None:
    documents = rendered("deployment", clusterDomain="example.internal")
    pod = one(documents, "Deployment", "speech-ingress")["spec"]["template"]["spec"]
    names = [word for word in pod["containers"][0]["args"] if word.startswith("--dns=")]
    assert names == ["--dns=speech-servers.default.svc.example.internal"]
    assert "cluster.local" not in helm("deployment", **NEEDED, clusterDomain="x").stdout


def told() -> dict[str, Any]:
    """What KubeRay hands on to Ray Serve."""
    import yaml

    (service,) = [d for d in rendered("ray", **EVERYTHING) if d["kind"] == "RayService"]
    return dict(yaml.safe_load(service["spec"]["serveConfigV2"]))


def test_a_replicas_server_takes_the_flags() -> None:
    given = told()["applications"][0]["args"]
    fields = set(ReplicaConfig.__struct_fields__)
    of_replica = {name: value for name, value in given.items() if name in fields}
    config = msgspec.convert(of_replica, ReplicaConfig)
    words = ["serve", *config.serve, *config.last_flags()]
    parsed = command_parser(words).parse_args(words)
    assert parsed.devices == "all" and parsed.voices_dir == "/voices"


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is missing: make test-fleet has it")
@pytest.mark.filterwarnings("ignore")  # Ray's own, of its dependencies
def test_ray_serve_is_told_what_it_and_the_application_take() -> None:
    from ray.serve.schema import ServeDeploySchema

    from realtime_tts.errors import ConfigError
    from realtime_tts.fleet.ray_app import application

    given = told()
    ServeDeploySchema.model_validate(given)
    arguments = given["applications"][0]["args"]
    application(arguments)
    with pytest.raises(ConfigError, match="drain_minutes"):
        application(arguments | {"drain_minutes": 3})
