"""Tests of plugins: the checks that every built-in strategy and format passes.

A test of a package is one line::

    def test_lifo():
        pipeplan.testing.check_strategy(LIFO)

A check that fails raises an AssertionError, which names the smallest case that shows the fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product, zip_longest
from random import Random
from typing import Any

from pipeplan.checking import Report, check
from pipeplan.costs import Settings
from pipeplan.formats import Format
from pipeplan.foundation.errors import CostError, InfeasibleError, PipeplanError, ShapeError
from pipeplan.model import Schedule, counted, format_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, Strategy, strategy

_EXACT = 1e-9
"""Rounding of the figures that are compared with formulas."""

_LIMITS = (None, "1act", "3act", "7act", "20B", "60B")


def check_strategy(rule: Strategy, *, cases: int = 200, seed: int = 0) -> None:
    """Check that a strategy makes valid schedules, within its own formulas, or refuses a shape.

    The schedule of every accepted shape is complete, in order, free of deadlock, on the placement that the strategy names,
    and the same each time; its idle time and its peak memory are at most ``bubble`` and ``memory``. A strategy that looks at
    costs also keeps memory limits, or raises InfeasibleError.

    Parameters
    ----------
    rule
        The strategy.
    cases
        Number of shapes, of up to 6 ranks, 14 microbatches, 4 chunks and 4 slices; a sample of all of them.
    seed
        Random seed of the sample and of costs.

    Raises
    ------
    AssertionError
        If the strategy breaks one of these rules; the message names the shape.
    """
    _require(isinstance(rule, Strategy), f"a strategy is a pipeplan.strategies.Strategy, not {rule!r}")
    for name in ("name", "title", "shapes", "paper", "idea"):
        _require(getattr(rule, name).strip(), f"{rule.name} has no {name}")
    _require(rule.bubble.text, f"{rule.name} has no text for its bubble")
    _require(rule.memory.text, f"{rule.name} has no text for its memory")
    random, shapes = Random(seed), list(_shapes(rule))
    sample = sorted(random.sample(range(len(shapes)), min(cases, len(shapes))))
    accepted = [shapes[place] for place in sample if _is_right(rule, shapes[place])]
    _require(accepted, f"{rule.name} refuses all of {len(sample)} shapes of up to 6 ranks and 14 microbatches")
    if rule.looks_at_costs:
        for shape in accepted:
            _require_limits(rule, shape, random)


def _require(holds: object, message: str) -> None:
    """Raise an AssertionError unless a condition holds, also where Python runs with ``-O``."""
    if not holds:
        raise AssertionError(message)


def _require_valid(case: str, report: Report) -> None:
    if report.problems:
        raise AssertionError(f"{case} is invalid: {report.problems[0]}")


def _shapes(rule: Strategy) -> Iterator[Shape]:
    """Yield small shapes with every option that the strategy has, the smallest first."""
    counts = [None] if rule.fixed_chunks else [1, 2, 3, 4]
    slices = [None, 1, 2, 3, 4] if rule.slices > 1 else [None]
    for ranks, microbatches, chunks, sliced, variant in product(
        range(1, 7), range(1, 15), counts, slices, rule.variants or (None,)
    ):
        for group in (None, *range(1, microbatches + 1)) if rule.grouped else (None,):
            yield rule.shape(ranks, microbatches, chunks, group_size=group, slices=sliced, variant=variant)


def _is_right(rule: Strategy, shape: Shape) -> bool:
    """Check the schedule of a shape; return False if the strategy refuses it."""
    case = f"{rule.name} on {_in_words(shape)}"
    try:
        schedule = rule(shape)
    except ShapeError as error:
        _require(rule.name in str(error), f"{case} is refused without naming the strategy: {error}")
        return False
    except Exception as error:
        raise AssertionError(f"{case} raises {type(error).__name__} instead of ShapeError: {error}") from error
    _require(schedule == rule(shape), f"{case} is another schedule each time")
    _require(schedule.name == rule.name, f"{case} is named {schedule.name}")
    size = (schedule.ranks, schedule.microbatches, schedule.slices)
    _require(
        size == (shape.ranks, shape.microbatches, shape.slices), f"{case} has {size} ranks, microbatches and slices"
    )
    placement = rule.placed(shape)
    _require(schedule.placement.rank_of == placement.rank_of, f"{case} is not on the placement {placement.name}")
    _require_valid(case, check(schedule))
    simulation = simulate(schedule, Settings().costs(placement))
    for word, value, formula in (
        ("idle time", float(simulation.timeline.idle.max()), rule.bubble),
        ("peak memory", float(simulation.memory.peak_activation.max()), rule.memory),
    ):
        most = formula.value(shape)
        _require(
            value <= most + _EXACT, f"{case}: its {word} is {value:g}, and its formula {formula.text} gives {most:g}"
        )
    return True


def _require_limits(rule: Strategy, shape: Shape, random: Random) -> None:
    """Check that the schedule of random costs is valid and within a memory limit, unless the strategy finds none."""
    placement = rule.placed(shape)

    def of_stages() -> tuple[float, ...]:
        return tuple(float(random.randint(1, 9)) for _ in range(placement.stages))

    per_stage: dict[str, Any] = {
        name: of_stages()
        for name in ("forward_times", "backward_input_times", "backward_weight_times", "activation_bytes")
    }
    settings = Settings(**per_stage, p2p_time=random.choice((0.0, 1.0)), memory_limit=random.choice(_LIMITS))
    case = f"{rule.name} on {_in_words(shape)} with a memory limit of {settings.memory_limit}"
    costs, limits = settings.costs(placement), settings.limits(placement)
    try:
        schedule = rule(shape, costs, limits)
    except (CostError, InfeasibleError):
        return
    _require_valid(case, check(schedule, memory=None if limits is None else costs.memory.rule(placement, limits)))


def _in_words(shape: Shape) -> str:
    words = [counted(shape.ranks, "rank"), counted(shape.microbatches, "microbatch")]
    words += [counted(shape.chunks, "chunk")] if shape.chunks > 1 else []
    words += [counted(shape.slices, "slice")] if shape.slices > 1 else []
    words += [f"groups of {shape.group_size}"] if shape.group_size is not None else []
    words += [f"variant {shape.variant}"] if shape.variant is not None else []
    return ", ".join(words)


_EXAMPLES = ("1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zbv", "dualpipe", "dualpipev", "seq1f1b")
"""Schedules with every kind of placement, full and split backwards, overlapped pairs, copies and slices."""


def check_format(format: Format) -> None:
    """Check that a format's reader and its writers are inverse to each other, and that it refuses other text.

    Schedules that the format cannot express must be refused with a PipeplanError; at least one must be accepted.

    Parameters
    ----------
    format
        A format of schedules with ``read``.

    Raises
    ------
    AssertionError
        If a schedule changes, or invalid text is not refused by a PipeplanError.
    """
    read, write = format.read, format.write_schedule
    if read is None or write is None:
        raise AssertionError(f"the format {format.name} does not {'read' if read is None else 'write'} schedules")
    kept = 0
    for name in _EXAMPLES:
        rule = strategy(name)
        schedule = rule(rule.shape(4, 8))
        try:
            text = write(schedule)
        except PipeplanError:
            continue
        content = read(text, name, False)
        if not isinstance(content, Schedule) or content != schedule:
            raise AssertionError(
                f"{format.name} does not read {name} as it was written: {_difference(content, schedule)}"
            )
        kept += 1
    _require(kept, f"{format.name} expresses none of {', '.join(_EXAMPLES)}")
    for text in ("", "\n", "no schedule", "0F0 9X9", "{}", "[1, 2]"):
        try:
            read(text, "text", False)
        except PipeplanError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{format.name} raises {type(error).__name__} for the text {text!r}: {error}"
            ) from error
        raise AssertionError(f"{format.name} accepts the text {text!r} as a schedule")


def _difference(content: Any, written: Schedule) -> str:
    """Return the first difference of what a format reads from the schedule that it wrote."""
    if not isinstance(content, Schedule):
        return f"it reads a {type(content).__name__}"
    for name in ("ranks", "microbatches", "slices", "placement"):
        mine, right = getattr(content, name), getattr(written, name)
        if mine != right:
            return f"its {name} is {mine}, not {right}"
    cells = [
        [
            f"{cell} on rank {rank}"
            for rank, row in enumerate(format_schedule(schedule).split("\n"))
            for cell in row.split()
        ]
        for schedule in (content, written)
    ]
    mine, right = next(pair for pair in zip_longest(*cells, fillvalue="nothing") if pair[0] != pair[1])
    return f"it reads {mine} in the place of {right}"
