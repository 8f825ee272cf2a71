"""Architectures whose config.json can be read, from the table ``architectures.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.planning.workload import hub, hub_details, hybrids
from pipeplan.extensions.planning.workload.hub import Rule

USUAL_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "ffn": "intermediate_size",
        "vocab": "vocab_size",
        "tied": "tie_word_embeddings",
    }
)
"""Field of most architectures by key of the short form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Description of the config.json of one architecture.

    Attributes
    ----------
    name
        Its ``model_type``.
    also, fields, renamed, defaults, always, rules, ffn_from_hidden, listed_layers
        As at the top of ``architectures.toml``.
    """

    name: str
    also: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    ffn_from_hidden: int = 0
    listed_layers: str = ""


@cache
def architectures() -> tuple[Architecture, ...]:
    """Return the rows of the table."""
    text = files("pipeplan.extensions.planning.workload").joinpath("architectures.toml").read_text("utf-8")
    return tuple(
        Architecture(name=name, **{**row, "rules": tuple(map(_rule, row.get("rules", ())))})
        for name, row in tomllib.loads(text).items()
    )


_FUNCTIONS = {**vars(hub), **vars(hub_details), **vars(hybrids)}
"""Everything in the modules of rules by its name."""


def _rule(entry: str | list[Any]) -> Rule:
    """Return the rule that a table names: a function of a file's fields, or one that returns it for these arguments."""
    if isinstance(entry, str):
        rule: Rule = _FUNCTIONS[entry]
        return rule
    name, *arguments = entry
    keywords = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    made: Rule = _FUNCTIONS[name](*arguments, **keywords)
    return made
