"""Findings for code hosts: SARIF for code scanning, and annotations of GitHub's workflows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeplan import __version__
from pipeplan.extensions.review import Severity
from pipeplan.extensions.review.answers.records import ReviewedConfiguration, ReviewedFiles, ReviewFinding
from pipeplan.extensions.review.answers.rules_table import review_rules
from pipeplan.foundation.documents import json_text

_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "advice": "note"}
"""Levels of SARIF; GitHub's command for a note is ``notice``."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_of(findings: Sequence[ReviewFinding], files: ReviewedFiles) -> str:
    """Return the findings as SARIF 2.1.0, with the rules that they break."""
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    messages = {rule.id: rule.message for rule in review_rules().rules}
    first = {finding.rule: finding for finding in reversed(findings)}
    driver = {
        "name": "pipeplan",
        "semanticVersion": __version__,
        "rules": [_rule(first[rule], messages.get(rule, first[rule].message)) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, rules.index(finding.rule)) for finding in findings],
        "invocations": [
            {
                "executionSuccessful": not files.unreadable,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": file.reason},
                        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(file.file)}}}],
                    }
                    for file in files.unreadable
                ],
            }
        ],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(finding: ReviewFinding, message: str) -> dict[str, Any]:
    return {
        "id": finding.rule,
        "shortDescription": {"text": finding.rule.replace("-", " ")},
        "fullDescription": {"text": f"{message}."},
        "help": {"text": f"Source: {finding.source}. `pipeplan list rules --json` has the remedy."},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
    }


def _result(finding: ReviewFinding, index: int) -> dict[str, Any]:
    # Code scanning shows no result without a line.
    region = {"startLine": finding.line or 1}
    if finding.column:
        region |= {"startColumn": finding.column, "endColumn": finding.end_column}
    location = {"artifactLocation": {"uri": _uri(finding.file)}, "region": region}
    name = f"{finding.configuration}: " if finding.configuration else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{name}{finding.message}. Remedy: {finding.remedy}."},
        "locations": [{"physicalLocation": location}],
    }


def _uri(file: str) -> str:
    """Return the address of a file: relative to the working folder, which is the root of a checkout."""
    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    return quote(path.as_posix())


def annotations_of(
    findings: Sequence[ReviewFinding], configurations: Sequence[ReviewedConfiguration], files: ReviewedFiles
) -> Iterator[str]:
    """Yield a command of GitHub's workflows for each file that cannot be read, finding, and unknown configuration."""
    for file in files.unreadable:
        yield _annotation("error", f"cannot be read: {file.reason}", file=file.file, title="pipeplan")
    for severity, level in _LEVELS.items():
        for finding in (one for one in findings if one.severity == severity):
            place: dict[str, str | int] = {"file": finding.file, "line": finding.line or 1}
            if finding.column:
                place |= {"col": finding.column, "endColumn": finding.end_column}
            text = f"{finding.message}\n{finding.remedy}"
            yield _annotation("notice" if level == "note" else level, text, **place, title=f"pipeplan {finding.rule}")
    for configuration in configurations:
        if configuration.unknown:
            text = f"not judged completely: {', '.join(configuration.unknown)} unknown {configuration.name}".rstrip()
            yield _annotation("notice", text, file=configuration.file, title="pipeplan")


def _annotation(command: str, message: str, **properties: str | int) -> str:
    """Return a command of GitHub's workflows, with what ends a line or a property escaped."""
    listed = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items())
    return f"::{command} {listed}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    for letter in f"%\r\n{more}":
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
