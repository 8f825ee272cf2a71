"""Traits of a run's software: properties that its settings change in a row of the table of trainers.

A name such as ``megatron-core+16-bit-gradients+exposed-tensor`` is a row of the table with traits behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, get_args

from pipeplan.extensions.planning.estimates.properties import ADDED_APART, Hidden

SEPARATOR = "+"
"""Separates a row's name and its traits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """Change of a trainer's software.

    Attributes
    ----------
    software, memory
        Values of fields of the software, and of the memory rules.
    hides, exposes
        Communication that overlaps computation with this trait, and communication that does not.
    """

    software: Mapping[str, Any] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    hides: frozenset[Hidden] = frozenset()
    exposes: frozenset[Hidden] = frozenset()


TRAITS: Mapping[str, Trait] = MappingProxyType(
    {
        "16-bit-gradients": Trait(software={"fp32_gradients": False}, memory={"gradient_bytes": 2}),
        "32-bit-gradients": Trait(software={"fp32_gradients": True}, memory={"gradient_bytes": 4}),
        "8-bit-parameters": Trait(memory={"small_weights": "instead"}),
        "16-bit-parameters": Trait(memory={"small_weights": "beside"}),
        "32-bit-moments": Trait(memory={"moment_bytes": 4}),
        "16-bit-moments": Trait(memory={"moment_bytes": 2}),
        "8-bit-moments": Trait(memory={"moment_bytes": 1}),
        "fused-loss": Trait(software={"fused_loss": True}),
        "unfused-loss": Trait(software={"fused_loss": False}),
        "dropout": Trait(software={"dropout": True}),
        "no-dropout": Trait(software={"dropout": False}),
        "tokens-by-rank": Trait(software={"dispatch": "ranks"}),
        "tokens-by-expert": Trait(software={"dispatch": "experts"}),
        "ring-attention": Trait(software={"context_method": "ring"}),
        "all-to-all-attention": Trait(software={"context_method": "all_to_all"}),
        "gradients-added-in-products": Trait(software={"adds_bytes": 0.0}),
        "gradients-added-apart": Trait(software={"adds_bytes": ADDED_APART}),
        **{f"hidden-{kind}": Trait(hides=frozenset({kind})) for kind in get_args(Hidden)},
        **{f"exposed-{kind}": Trait(exposes=frozenset({kind})) for kind in get_args(Hidden)},
    }
)
"""Traits by name. Each has an opposite, so that a run's settings can confirm or change any row."""
