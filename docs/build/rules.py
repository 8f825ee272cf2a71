"""A page for each group of the rules of reviews: fault, remedy, trainer, releases and source of each."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import pipeplan
from pipeplan.extensions.review.answers.rules_table import ReviewRule, ReviewRules

FOLDER = "reference/rules/"

INTRODUCTION = """# Rules of reviews

`pipeplan review` judges a configuration by these {count} rules. An *error* is a configuration that the trainer refuses or
trains wrongly; a *warning* is slow, tight or fragile; *advice* names a better setting. `pipeplan list rules` lists them,
too. To add one, see [A rule](../../extending.md#a-rule).

{table}

## Rules by trainer

{trainers}
"""

_LINKS = {
    "Megatron-LM": "NVIDIA/Megatron-LM",
    "Megatron-Bridge": "NVIDIA-NeMo/Megatron-Bridge",
    "NeMo": "NVIDIA/NeMo",
    "NeMo-RL": "NVIDIA-NeMo/RL",
    "AutoModel": "NVIDIA-NeMo/Automodel",
    "torchtitan": "pytorch/torchtitan",
    "PyTorch": "pytorch/pytorch",
    "Primus": "AMD-AGI/Primus",
    "ms-swift": "modelscope/ms-swift",
    "verl": "volcengine/verl",
    "DeepSpeed": "deepspeedai/DeepSpeed",
    "TransformerEngine": "NVIDIA/TransformerEngine",
}
"""Repositories of the issues that sources name."""


def groups() -> list[str]:
    """Return the groups of rules in their order."""
    return list(dict.fromkeys(rule.group for rule in pipeplan.review_rules()))


def pages() -> Iterator[tuple[str, str]]:
    """Return the path and the text of each page."""
    rules = pipeplan.review_rules()
    rows = ["| group | rules | |", "|---|---:|---|"]
    for group in groups():
        own = [rule for rule in rules if rule.group == group]
        rows.append(f"| [{group}]({group}.md) | {len(own)} | {_summary(group)} |")
        yield f"{FOLDER}{group}.md", _page(group, own)
    yield f"{FOLDER}index.md", INTRODUCTION.format(count=len(rules), table="\n".join(rows), trainers=by_trainer(rules))


def by_trainer(rules: ReviewRules) -> str:
    """Return the number of rules of each severity by trainer, as a table."""
    rows = ["| trainer | errors | warnings | advice |", "|---|---:|---:|---:|"]
    for trainer in sorted({rule.trainer for rule in rules}):
        severities = [rule.severity for rule in rules if rule.trainer == trainer]
        counts = (str(severities.count(severity)) for severity in ("error", "warning", "advice"))
        rows.append(f"| {trainer} | {' | '.join(counts)} |")
    return "\n".join(rows)


def _page(group: str, rules: list[ReviewRule]) -> str:
    parts = [f"# Rules: {group}\n\n{_summary(group)}.\n"]
    for rule in rules:
        releases = f", releases {', '.join(f'`{part}`' for part in rule.releases.split(','))}" if rule.releases else ""
        parts.append(
            f"## {rule.id}\n\n**{rule.severity}** · {rule.trainer}{releases}\n\n"
            f"{_sentence(rule.message)} Remedy: {_sentence(rule.remedy, capital=False)}\n\nSource: {_linked(rule.source)}.\n"
        )
    return "\n".join(parts)


def _summary(group: str) -> str:
    """Return what the module of a group says of itself."""
    text = (importlib.import_module(f"pipeplan.extensions.review.rules.{group}").__doc__ or "").partition("\n")[0]
    subject = text.removeprefix("Rules of ").rstrip(".")
    return subject[:1].upper() + subject[1:]


def _sentence(text: str, *, capital: bool = True) -> str:
    """Return a sentence of a rule with its settings in code."""
    coded = re.sub(r"\{(\w+)[^}]*\}", r"*\1*", text)
    coded = re.sub(r"(?<![\w`])(--[a-z][\w-]+)", r"`\1`", coded).replace("|", "\\|").replace("<", "&lt;")
    return (coded[:1].upper() + coded[1:] if capital else coded) + "."


def _linked(source: str) -> str:
    """Return a source with a link for each issue and paper."""

    def issue(match: re.Match[str]) -> str:
        repository = _LINKS.get(match[1])
        return f"[{match[0]}](https://github.com/{repository}/issues/{match[2]})" if repository else match[0]

    linked = re.sub(r"([\w-]+) #(\d+)", issue, source.replace("__", "\\_\\_"))
    return re.sub(r"arXiv[: ](\d{4}\.\d{5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", linked)
