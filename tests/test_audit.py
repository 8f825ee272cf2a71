"""The lock has all that is installed, and its audit says what it found, or that it could ask nobody."""

import importlib.util
import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["audit"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["audit"]


def direct() -> list[Requirement]:
    """What ``pyproject.toml`` asks for: of users, and for tests and pages."""
    project = PROJECT["project"]
    groups = [*project["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    texts = [*project["dependencies"], *(each for group in groups for each in group)]
    return [requirement for requirement in map(Requirement, texts) if requirement.name != "pipeplan"]


def test_the_lock_keeps_to_what_is_asked_for(audit):
    versions: dict[str, list[str]] = {}
    for name, version in audit.pins(LOCK):
        versions.setdefault(name, []).append(version)
    for requirement in direct():
        name = canonicalize_name(requirement.name)
        assert versions[name], requirement
        assert all(map(requirement.specifier.contains, versions[name])), f"{requirement}: make lock"
    for name, version in audit.pins((ROOT / "constraints.txt").read_text()):
        assert versions.get(name, [version]) == [version], f"{name}: make lock"


def test_the_lock_has_everything_that_is_installed_for_it(audit):
    """What asks for what is read off the environment that runs this."""
    locked = {name for name, _ in audit.pins(LOCK)}
    waiting, seen = [(each.name, tuple(each.extras)) for each in direct()], set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            continue
        assert canonicalize_name(name) in locked, f"{name}: make lock"
        waiting += [
            (each.name, tuple(each.extras))
            for each in map(Requirement, needs)
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        ]
    assert len(seen) > 50


def test_the_lock_tells_no_address():
    assert re.search(r"https?://|file://|--(extra-)?index|find-links", LOCK) is None


PACKAGES = [
    {"name": "good", "version": "1", "vulns": []},
    {"name": "bad", "version": "2", "vulns": [{"id": "A-1", "aliases": ["CVE-1"], "fix_versions": ["2.1"]}]},
    {"name": "own", "skip_reason": "not there"},
]
REPORT = {
    "vulnerabilities": {
        "esbuild": {"via": [{"url": "https://x/advisories/GHSA-a", "range": "<1"}], "fixAvailable": True},
        "vite": {"via": ["esbuild"], "fixAvailable": True},
    },
    "metadata": {"dependencies": {"total": 90}},
}


def test_what_is_found_is_a_line_and_fails(audit):
    lines, code = audit.told([audit.python_audit(PACKAGES), audit.pages_audit(REPORT)], {})
    assert code == 1
    assert lines == [
        "not audited: own; the service does not know them",
        "bad 2: A-1, CVE-1; fixed in 2.1",
        "audited: the Python packages, 2 releases; 1 known vulnerability",
        "esbuild <1: GHSA-a; an update fixes it",
        "audited: the pages' packages, 90 releases; 1 known vulnerability",
    ]


@pytest.mark.parametrize("answer", ["[", json.dumps({"message": "405", "error": {"summary": ""}})])
def test_where_nobody_answers_it_is_neither_passed_nor_failed(audit, monkeypatch, answer):
    monkeypatch.setattr(audit.shutil, "which", lambda name: name)
    monkeypatch.setattr(audit.subprocess, "run", lambda *a, **k: audit.subprocess.CompletedProcess(a, 1, answer, ""))
    lines, code = audit.told([audit.audited_python(), audit.audited_pages()], {"GHSA-old": "not asked about"})
    assert code == 0
    assert lines == [
        "not audited: the Python packages; no service that knows of vulnerabilities answered",
        "not audited: the pages' packages; no service that knows of vulnerabilities answered",
    ]


def test_every_advisory_that_is_ignored_has_a_reason(audit):
    assert all(len(reason) > 20 for reason in audit.ignored().values())
    assert {*audit.ignored()} == {each["id"] for each in tomllib.loads(audit.IGNORED.read_text()).get("ignored", [])}
