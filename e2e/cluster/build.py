"""Builds the control plane's programs from the Go modules in tools/."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import versions
from layout import HERE, ClusterError, bin_dir, lock, say

HEARTBEAT_SECONDS = 20
LOG_LINES = 20
# Beside the binaries: how many seconds the last build of each took.
TIMES = "build-times.json"


@dataclass(frozen=True)
class Tool:
    """One program: the module (folder in tools/) and package it comes from, and the
    seconds a first build takes on two cores when nothing else runs."""

    module: str
    package: str
    seconds: int


TOOLS = {
    "etcd": Tool("etcd", "go.etcd.io/etcd/server/v3", 39),
    "kube-apiserver": Tool("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", 177),
    "kube-controller-manager": Tool(
        "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", 53),
    "kube-scheduler": Tool("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", 5),
    "kubectl": Tool("kubernetes", "k8s.io/kubernetes/cmd/kubectl", 20),
    "kwok": Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", 9),
    "kubelet": Tool("kubernetes", "k8s.io/kubernetes/cmd/kubelet", 18),
    "helm": Tool("helm", "helm.sh/helm/v4/cmd/helm", 50),
    "helm3": Tool("helm3", "helm.sh/helm/v3/cmd/helm", 103),
}
ON_REQUEST = ("kubelet", "helm", "helm3")
DEFAULT = tuple(name for name in TOOLS if name not in ON_REQUEST)


def binary(tool: str) -> Path:
    return bin_dir() / tool


def packages(module: str) -> tuple[str, ...]:
    """The programs of a module."""
    return tuple(tool.package for tool in TOOLS.values() if tool.module == module)


def is_derived(tool: str) -> bool:
    """Whether a tool is of a version of Kubernetes that has no module in tools/."""
    return TOOLS[tool].module == "kubernetes" and not versions.is_usual()


def module_dir(tool: str) -> Path:
    """The module a tool is built from; a derived one is beside the binaries."""
    if is_derived(tool):
        return bin_dir() / f"kubernetes-{versions.version()}.module"
    return HERE / "tools" / TOOLS[tool].module


def ldflags(tool: str) -> str:
    """Linker flags. Some programs learn from them which version of Kubernetes they are of."""
    known = {"kubernetes": kubernetes_values, "helm3": helm3_values}.get(TOOLS[tool].module)
    values = known() if known else {}
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in values.items())])


def kubernetes_values() -> dict[str, str]:
    """Without these, Kubernetes' programs call themselves v0.0.0-master, and version checks of
    their clients go wrong. The second package is where the user agents in the audit log have
    theirs from."""
    version = versions.version()
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return {f"{package}.{key}": value
            for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
            for key, value in values.items()}


def helm3_values() -> dict[str, str]:
    """Without these, Helm 3 renders and lints for Kubernetes 1.20; with them, for the version of
    its client, as its own Makefile does."""
    client = re.search(r"k8s\.io/client-go v0\.(\d+)\.", (module_dir("helm3") / "go.mod").read_text())
    if not client:
        raise ClusterError("tools/helm3/go.mod does not require k8s.io/client-go")
    return {f"helm.sh/helm/v3/pkg/{package}.k8sVersion{part}": value
            for package in ("chartutil", "lint/rules")
            for part, value in (("Major", "1"), ("Minor", client[1]))}


def stamp(tool: str) -> str:
    """What a binary was built from. A binary with another stamp is stale. A derived module
    follows from its version, which is among the flags."""
    digest = hashlib.sha256(ldflags(tool).encode())
    if not is_derived(tool):
        for name in ("go.mod", "go.sum"):
            digest.update((module_dir(tool) / name).read_bytes())
    return digest.hexdigest()


def read_notes(name: str) -> dict:
    """Notes beside the binaries, one JSON object per file."""
    try:
        return json.loads((bin_dir() / name).read_text())
    except FileNotFoundError:
        return {}


def note(name: str, tool: str, value: object) -> None:
    notes = read_notes(name) | {tool: value}
    (bin_dir() / name).write_text(json.dumps(notes, indent=1, sort_keys=True) + "\n")


def missing(tools: tuple[str, ...]) -> list[str]:
    """Those of the tools that are not built, or not from the modules as they are now."""
    stamps = read_notes("stamps.json")
    return [tool for tool in tools
            if not binary(tool).exists() or stamps.get(tool) != stamp(tool)]


def ensure(tools: tuple[str, ...] = DEFAULT) -> None:
    """Builds what is missing. One caller at a time: a second one waits, then finds it done."""
    if not missing(tools):
        return
    if not shutil.which("go"):
        raise ClusterError("`go` is not on PATH; the control plane is built from source, see "
                           "tools/*/go.mod for the version it needs")
    bin_dir().mkdir(parents=True, exist_ok=True)
    with lock(bin_dir() / ".lock", "builds"):
        todo = missing(tools)
        if derived := [tool for tool in todo if is_derived(tool)]:
            versions.write_module(module_dir(derived[0]), packages("kubernetes"))
        for number, tool in enumerate(todo, start=1):
            build(tool, todo[number:], f"[{number}/{len(todo)}]")


def build(tool: str, later: list[str], place: str) -> None:
    """Builds one tool beside its final place, so that a running one is not disturbed. The tools
    that are built later count in how long it says is left."""
    say(f"{place} building {tool}, {left(tool, later, read_notes(TIMES))}")
    fresh = bin_dir() / f".{tool}.new"
    log = bin_dir() / f"{tool}.build.log"
    wanted = stamp(tool)
    command = [str(HERE / "go_build.sh"), "-ldflags", ldflags(tool), "-o", str(fresh),
               TOOLS[tool].package]
    began = time.monotonic()
    run_with_heartbeat(tool, later, command, log)
    os.replace(fresh, binary(tool))
    seconds = round(time.monotonic() - began)
    note(TIMES, tool, seconds)
    note("stamps.json", tool, wanted)
    log.unlink()
    say(f"{place} built {tool} in {seconds} s")


def left(tool: str, later: list[str], times: dict[str, int], spent: float = 0) -> str:
    """How long it takes until all are built, after so many seconds of building the first. A build
    takes as long as last time (`times`), or else as a first one on two cores."""
    first, *others = (times.get(name, TOOLS[name].seconds) for name in (tool, *later))
    seconds = round(max(first - spent, 0) + sum(others))
    return f"about {seconds} s left" if seconds < 90 else f"about {round(seconds / 60)} min left"


def run_with_heartbeat(tool: str, later: list[str], command: list[str], log: Path) -> None:
    """Runs the build of a tool with its output in a log, and says now and then what is left."""
    times = read_notes(TIMES)
    began = time.monotonic()
    with log.open("w") as output:
        # A group of its own, so that the compilers it starts can be ended with it, but no session
        # of its own, so that it yields as much as the caller's does.
        child = subprocess.Popen(command, cwd=module_dir(tool), stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=subprocess.STDOUT, preexec_fn=os.setpgrp)
        try:
            while True:
                try:
                    code = child.wait(HEARTBEAT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    spent = time.monotonic() - began
                    say(f"      {tool}: {spent:.0f} s, {left(tool, later, times, spent)}")
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)
                child.wait()
    if code != 0:
        tail = "\n".join(log.read_text().splitlines()[-LOG_LINES:])
        raise ClusterError(f"{tool} does not build; the end of {log}:\n{tail}")
