"""Who reaches what, by the chart's NetworkPolicies. They are judged as Kubernetes documents them: a
pod that a policy selects is reached only as some rule of such a policy allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fleet.test_chart import pods, rendered
from tests.fleet.test_chart import pytestmark as pytestmark

IN_RELEASE, ELSEWHERE, MONITORING = "default", "elsewhere", "monitoring"
OPERATOR = {"app.kubernetes.io/name": "kuberay-operator"}


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    expressions = selector.get("matchExpressions", ())
    assert all(one["operator"] == "In" for one in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(one["key"]) in one["values"] for one in expressions
    )


def is_peer(peer: dict[str, Any], namespace: str, labels: dict[str, str]) -> bool:
    if "namespaceSelector" in peer:
        there = selects(peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace})
    else:
        there = namespace == IN_RELEASE
    return there and selects(peer.get("podSelector", {}), labels)


def has_port(rule: dict[str, Any], number: int, names: dict[str, int]) -> bool:
    for port in rule.get("ports") or [{"port": 0, "endPort": 65_535}]:
        first = names[port["port"]] if isinstance(port["port"], str) else port["port"]
        if first <= number <= port.get("endPort", first):
            return True
    return False


class Network:
    """The pods of a release behind its policies."""

    def __init__(self, mode: str, **values: str) -> None:
        documents = rendered(mode, **values)
        self._policies = [one["spec"] for one in documents if one["kind"] == "NetworkPolicy"]
        templates = [template for document in documents for template in pods(document)]
        self._pods = {
            template["metadata"]["labels"]["app.kubernetes.io/component"]: template
            for template in templates
        }

    def labels(self, component: str) -> dict[str, str]:
        return dict(self._pods[component]["metadata"]["labels"])

    def reached(
        self, component: str, port: int, namespace: str, source: dict[str, str] | None = None
    ) -> bool:
        """Whether a pod with these labels reaches a port of that one."""
        containers = self._pods[component]["spec"]["containers"]
        names = {p["name"]: p["containerPort"] for c in containers for p in c.get("ports", ())}
        policies = [
            one for one in self._policies if selects(one["podSelector"], self.labels(component))
        ]
        return not policies or any(
            has_port(rule, port, names)
            and any(
                is_peer(peer, namespace, source or {}) for peer in rule.get("from") or [ANYBODY]
            )
            for policy in policies
            for rule in policy["ingress"]
        )

    def inside(self, source: str, component: str, port: int) -> bool:
        return self.reached(component, port, IN_RELEASE, self.labels(source))


ANYBODY: dict[str, Any] = {"namespaceSelector": {}, "podSelector": {}}
ON = {"networkPolicy.enabled": "true"}


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_without_policies_everybody_reaches_everything(mode: str) -> None:
    assert Network(mode).reached("server", 8000, ELSEWHERE)


@pytest.mark.parametrize("mode", ["deployment", "ray"])
def test_clients_reach_the_ingress_and_nothing_else(mode: str) -> None:
    network = Network(mode, **ON)
    assert network.reached("ingress", 8000, ELSEWHERE)
    assert not network.reached("ingress", 8002, ELSEWHERE)
    for port in (8000, 8001, 21_000, 21_500):
        assert not network.reached("server", port, ELSEWHERE)
        assert not network.reached("server", port, IN_RELEASE)


def test_the_ingress_and_prometheus_reach_the_servers() -> None:
    network = Network("deployment", **ON)
    assert network.inside("ingress", "server", 8000) and network.inside("ingress", "server", 8001)
    assert network.reached("server", 8000, MONITORING)
    assert not network.reached("server", 8001, MONITORING)


def test_they_reach_replicas_at_every_port_that_those_may_take() -> None:
    network = Network("ray", **ON, **{"ray.ports": "{21000,21003}"})
    for port, allowed in ((20_999, False), (21_000, True), (21_003, True), (21_004, False)):
        assert network.inside("ingress", "server", port) is allowed
        assert network.reached("server", port, MONITORING) is allowed
    assert network.reached("ingress", 8002, MONITORING)


def test_ray_s_pods_reach_each_other_and_others_only_what_they_need_of_the_head() -> None:
    network = Network("ray", **ON)
    for source, component in (("head", "server"), ("server", "head"), ("server", "server")):
        assert network.inside(source, component, 40_123)
    assert network.inside("ingress", "head", 10_001)
    assert network.reached("head", 8265, ELSEWHERE, OPERATOR)
    for port in (6379, 8265, 10_001):
        assert not network.reached("head", port, ELSEWHERE)
    assert not network.inside("ingress", "head", 8265)


@pytest.mark.parametrize(("mode", "ports"), [("deployment", [8000, 8001]), ("ray", [21_000])])
def test_where_nobody_scrapes_or_operates_nobody_else_gets_in(mode: str, ports: list[int]) -> None:
    """To Kubernetes, an empty `from` is everybody."""
    nobody = {"networkPolicy.prometheus": "null", "networkPolicy.operator": "null"}
    network = Network(mode, **ON, **nobody)
    for port in ports:
        assert network.inside("ingress", "server", port)
        assert not network.reached("server", port, ELSEWHERE)
        assert not network.reached("server", port, MONITORING)
    assert not network.reached("ingress", 8002, MONITORING)
    if mode == "ray":
        assert not network.reached("head", 8265, ELSEWHERE, OPERATOR)
