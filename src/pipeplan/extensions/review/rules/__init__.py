"""The rules of reviews: a module for each group, and all of them."""

from __future__ import annotations

from pipeplan.extensions.review.rule import RuleRow
from pipeplan.extensions.review.rules import (
    batches,
    communication,
    estimates,
    experts,
    grid,
    layouts,
    memory,
    neox_nanotron,
    precision,
    schedules,
    torch_layouts,
)

RULES: tuple[RuleRow, ...] = (
    *grid.RULES,
    *batches.RULES,
    *layouts.RULES,
    *torch_layouts.RULES,
    *schedules.RULES,
    *experts.RULES,
    *memory.RULES,
    *precision.RULES,
    *communication.RULES,
    *estimates.RULES,
    *neox_nanotron.RULES,
)
"""Every rule, by group in the order in which a review asks: does it start, is it right, where does it lose."""
