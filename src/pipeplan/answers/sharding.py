"""Collectives of sharded stages in schedules, by the rule of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from pipeplan.costs import Settings
from pipeplan.foundation.errors import CostError
from pipeplan.model import STAGE_WIDE_KINDS, Schedule, Sharding

if TYPE_CHECKING:
    from pipeplan.passes import Lookahead, ShardingRule

ShardingUsed: TypeAlias = Literal["own", "pytorch", "megatron"]
"""Origin of a schedule's collectives: its own, or those of a rule."""


def rule_of(settings: Settings) -> ShardingRule:
    """Return the rule of the settings: if none is chosen, PyTorch's if collectives cost anything, else none.

    Raises CostError for options of another rule, and for a lookahead that is none.
    """
    from pipeplan.passes import ShardingRule  # few schedules have collectives

    name = _name(settings)
    rule = ShardingRule(name)
    if name != "pytorch":
        return rule
    active = rule.max_active_stages if settings.max_active_stages is None else settings.max_active_stages
    return ShardingRule(name, active, _lookahead(settings.unshard_lookahead))


def _name(settings: Settings) -> Sharding:
    return settings.sharding_rule or ("pytorch" if settings.is_sharded else "none")


def _lookahead(text: str | None) -> Lookahead:
    """Return a lookahead from its text."""
    match (text or "full").strip():
        case "full":
            return "full"
        case "auto":
            return "auto"
        case words:
            numbers = [word.strip() for word in words.split(",")]
    if not all(number.isdecimal() and len(number) < 10 for number in numbers):
        raise CostError(
            f"invalid unshard_lookahead '{text}': expected full, auto, a number, or one per rank such as 2,3,4,4",
            field="unshard_lookahead",
        )
    return int(numbers[0]) if len(numbers) == 1 else [int(number) for number in numbers]


def in_words(used: ShardingUsed, settings: Settings | None) -> str:
    """Return the origin of collectives in a few words."""
    if used == "own":
        return "as they are in the schedule"
    if settings is None:
        from pipeplan.passes import ShardingRule

        return "by PyTorch's rule" if used == "pytorch" else ShardingRule(used).in_words
    return rule_of(settings).in_words


def sharding_searched(rule: ShardingRule | None) -> ShardingUsed | UnsetType:
    """Return the origin of the collectives in the schedule of a search; unset for none."""
    return UNSET if rule is None or rule.name == "none" else rule.name


def sharding_used(schedule: Schedule, settings: Settings) -> ShardingUsed | None:
    """Return the origin of the collectives that a schedule gets, or has; None for none."""
    if settings.sharding_rule is None and not schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        return "own"
    name = _name(settings)
    return None if name == "none" else name


def sharded(schedule: Schedule, settings: Settings) -> Schedule:
    """Return the schedule with the collectives of the settings: its own if it has any, unless a rule is chosen.

    Raises CostError for settings that exclude each other, and ShapeError for a lookahead that does not fit the ranks.
    """
    used = sharding_used(schedule, settings)
    if used == "own" or (used is None and schedule.kinds.isdisjoint(STAGE_WIDE_KINDS)):
        return schedule
    if used is None:
        from pipeplan.passes import without_collectives

        return without_collectives(schedule)
    return rule_of(settings)(schedule)
