"""Does anything that is locked have a known vulnerability? Of Python's packages and of the pages' tools.

    .venv-audit/bin/python .ci/audit.py

``pip-audit`` asks PyPI's advisories, or OSV's where PyPI has none, about every release in ``requirements.lock``, whatever
platform or Python it is for; ``npm audit`` asks about ``web_ui/package-lock.json``. Each finding is a line, and then the
exit code is 1. Where no service answers, one line says that nothing was audited, and the exit code is 0: that is neither
passed nor failed. ``.ci/audit-ignored.toml`` names the advisories that do not concern pipeplan, each with its reason.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
PAGES = ROOT / "web_ui"
IGNORED = Path(__file__).with_name("audit-ignored.toml")

SERVICES = ("pypi", "osv")
"""Of pip-audit, in the order in which they are asked."""

SECONDS = 15
"""How long one question may take: who asks behind a network that answers nothing waits no longer."""


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """One advisory about one package that is locked."""

    package: str
    ids: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        return f"{self.package}: {', '.join(self.ids)}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of an audit.

    Attributes
    ----------
    what
        Was audited, in words.
    audited
        How many packages a service knew.
    unknown
        Those that it did not know.
    found
        What is wrong with the others.
    """

    what: str
    audited: int
    unknown: tuple[str, ...] = ()
    found: tuple[Vulnerability, ...] = ()


def pins(lock: str) -> list[tuple[str, str]]:
    """Names and versions of a lock, of all platforms; a name may have several versions."""
    lines = (line.partition(";")[0].partition("#")[0].strip() for line in lock.splitlines())
    return [(name, version) for name, _, version in (line.partition("==") for line in lines) if name]


def apart(pinned: Iterable[tuple[str, str]]) -> list[str]:
    """The texts of requirement files in each of which no name stands twice, as pip-audit takes them."""
    files: list[dict[str, str]] = []
    for name, version in pinned:
        free = next((each for each in files if name not in each), None)
        if free is None:
            files.append(free := {})
        free[name] = version
    return ["".join(f"{name}=={version}\n" for name, version in each.items()) for each in files]


def audited_python(lock: Path = LOCK) -> Audit:
    """The audit of Python's packages by the first service that knows any of them."""
    pinned = apart(pins(lock.read_text(encoding="utf-8")))
    for service in SERVICES:
        reports = [_pip_audit(text, service) for text in pinned]
        found = python_audit([each for report in reports for each in report])
        if found.audited:
            return found
    return Audit("the Python packages", 0)


def _pip_audit(requirements: str, service: str) -> list[Mapping[str, Any]]:
    """pip-audit's report by package; empty where it had none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text(requirements, encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), "--no-deps", "--disable-pip"]
        options = ["--format", "json", "--progress-spinner", "off", "--vulnerability-service", service]
        report = _answer([*command, *options, "--timeout", str(SECONDS)])
    found: list[Mapping[str, Any]] = report.get("dependencies", [])
    return found


def python_audit(packages: Iterable[Mapping[str, Any]]) -> Audit:
    """What pip-audit's report says."""
    known, unknown, found = 0, [], []
    for package in packages:
        if "skip_reason" in package:
            unknown.append(package["name"])
            continue
        known += 1
        for each in package["vulns"]:
            fixed = ", ".join(each["fix_versions"])
            remedy = f"fixed in {fixed}" if fixed else "no release fixes it yet"
            ids = tuple(dict.fromkeys((each["id"], *each["aliases"])))
            found.append(Vulnerability(f"{package['name']} {package['version']}", ids, remedy))
    return Audit("the Python packages", known, tuple(unknown), tuple(found))


def audited_pages() -> Audit:
    """The audit of the pages' tools and of what is in their bundles."""
    if shutil.which("npm") is None:
        return Audit("the pages' packages (there is no npm)", 0)
    options = ["--fetch-retries", "0", "--fetch-timeout", str(1000 * SECONDS)]
    return pages_audit(_answer(["npm", "audit", "--package-lock-only", "--json", *options], PAGES))


def pages_audit(report: Mapping[str, Any]) -> Audit:
    """What npm's report says."""
    found = {}
    for name, each in report.get("vulnerabilities", {}).items():
        remedy = "an update fixes it" if each.get("fixAvailable") else "no release fixes it yet"
        for via in each["via"]:
            if isinstance(via, Mapping):
                advisory = str(via["url"]).rpartition("/")[2]
                found[name, advisory] = Vulnerability(f"{name} {via.get('range', '')}".strip(), (advisory,), remedy)
    count = report.get("metadata", {}).get("dependencies", {}).get("total", 0)
    return Audit("the pages' packages", count, found=tuple(found.values()))


def _answer(command: Sequence[str], folder: Path = ROOT) -> Mapping[str, Any]:
    """The JSON that a program prints, whatever its exit code; empty where it prints none, or takes too long."""
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=4 * SECONDS)
        found: Mapping[str, Any] = json.loads(ended.stdout)
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError):
        return {}
    return found


def ignored(path: Path = IGNORED) -> dict[str, str]:
    """The advisories that do not concern pipeplan, each with why. Raises KeyError for one without a reason."""
    listed = tomllib.loads(path.read_text(encoding="utf-8")).get("ignored", [])
    return {each["id"]: each["reason"] for each in listed}


def told(audits: Sequence[Audit], reasons: Mapping[str, str]) -> tuple[list[str], int]:
    """What is said of audits, a line each, and the exit code."""
    lines, wrong = [], []
    for audit in audits:
        if not audit.audited:
            lines.append(f"not audited: {audit.what}; no service that knows of vulnerabilities answered")
            continue
        if audit.unknown:
            lines.append(f"not audited: {', '.join(audit.unknown)}; the service does not know them")
        here = [each for each in audit.found if reasons.keys().isdisjoint(each.ids)]
        lines += map(str, here)
        count = f"{len(here) or 'no'} known {'vulnerabilities' if len(here) > 1 else 'vulnerability'}"
        lines.append(f"audited: {audit.what}, {audit.audited} releases; {count}")
        wrong += here
    if all(audit.audited for audit in audits):
        found = {each for audit in audits for one in audit.found for each in one.ids}
        lines += [f"{each} is ignored and was not found: take it out" for each in sorted(reasons.keys() - found)]
    return lines, 1 if wrong else 0


def main() -> int:
    """Audit, and say what was found; the exit code."""
    lines, code = told([audited_python(), audited_pages()], ignored())
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
