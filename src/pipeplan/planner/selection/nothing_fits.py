"""Why no configuration is legal, or none fits: the rule in the way, what comes nearest, and the cheapest change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from typing import Any

from pipeplan.errors import PipeplanError, ShapeError
from pipeplan.files import GIBIBYTE
from pipeplan.planner.answers import ClosestMiss, Estimate
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.selection.branching import Space
from pipeplan.planner.selection.candidates import FRAME_FIELDS, as_configuration, drafts, frames, variants
from pipeplan.planner.selection.legality import RULES, Rule
from pipeplan.planner.selection.request import PlanRequest, short_name, written


def refusal(request: PlanRequest) -> ShapeError | None:
    """Why a request has no legal configuration; None where it has one.

    The rule to blame is one without which there would be a configuration; where several stand in the way together, the one
    that refused the most.
    """
    refusals: Counter[str] = Counter()
    if next(drafts(request, refusals), None) is not None:
        return None
    asked = _asked(request)
    for name, _ in refusals.most_common():
        if next(drafts(request, without=frozenset({name})), None) is not None:
            return _error(request, _rule(name), asked)
    worst = refusals.most_common(1)[0][0]
    return _error(request, _rule(worst), asked)


def _error(request: PlanRequest, rule: Rule, asked: str) -> ShapeError:
    remedy = _nearest_batches(request) if rule.name == "batch" else _legal_values(request, rule)
    field = "global_batch" if rule.name == "batch" and "data" not in request.fixed else "fix"
    return ShapeError(f"no configuration{asked} is legal: {rule.sentence(request)}{remedy}", field=field)


def _rule(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


def _asked(request: PlanRequest) -> str:
    fixed = " ".join(
        f"{short_name(field)}={','.join(written(field, value) for value in values)}"
        for field, values in request.fixed.items()
        if not (field == "software" and "trainer" in request.fixed)
    )
    return f" with {fixed}" if fixed else ""


def _nearest_batches(request: PlanRequest) -> str:
    """Return the nearest batches that some frame could share equally, in words."""
    without = frozenset({"batch"})
    shares = {
        frame["data"] * min(request.fixed.get("microbatch_size", (1,)))
        for frame in islice(frames(request, without=without), 50_000)
    }
    if not shares:
        return ""
    batch = request.global_batch
    below = max((batch // share * share for share in shares), default=0)
    above = min(-(-batch // share) * share for share in shares)
    near = [str(each) for each in dict.fromkeys((below, above)) if each > 0]
    return f"; the nearest that can be shared so: {' or '.join(near)}" if near else ""


def _legal_values(request: PlanRequest, rule: Rule) -> str:
    """Return values of a fixed field under which there is a configuration, in words."""
    for field in request.fixed:
        if field not in rule.needs:
            continue
        fixed = {name: values for name, values in request.fixed.items() if name != field}
        freed = replace(request, fixed=fixed)
        if field in FRAME_FIELDS:
            found = {written(field, frame[field]) for frame in islice(_whole(freed), 20_000)}
        else:
            found = {
                written(field, each[field]) for each in islice(drafts(freed), 20_000) if each.get(field) is not None
            }
        if found:
            return f"; legal with {short_name(field)} {', '.join(sorted(found, key=_order)[:12])}"
    return ""


def _whole(request: PlanRequest) -> Iterator[dict[str, Any]]:
    """Return frames that have a variant."""
    return (frame for frame in frames(request) if next(variants(request, frame), None) is not None)


def _order(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (0, text)


MOST_ESTIMATES = 48
"""Maximum number of estimates of a search for the lowest peak: bounds on memory are close, so the first few decide."""

MORE_GPUS = (2, 4, 8, 16, 32, 64)
"""Factors on the nodes that are tried."""


def thriftiest(request: PlanRequest, *, must_fit: bool = False) -> Estimate | None:
    """The configuration with the lowest peak, or the first that fits; None where nothing is legal.

    Bounds on memory are estimated from the lowest on, until none is lower than the lowest peak.

    Parameters
    ----------
    must_fit
        Give None where nothing fits, and look at nothing whose parameters alone do not.
    """
    best: Estimate | None = None
    largest = request.memory_limit if must_fit else inf
    for least, configuration in islice(_by_memory(request, largest), MOST_ESTIMATES):
        if best is not None and (best.peak_bytes <= least or best.peak_bytes <= request.memory_limit):
            break
        try:
            found = request.estimate(configuration)
        except PipeplanError:
            continue
        if best is None or found.peak_bytes < best.peak_bytes:
            best = found
    if must_fit and best is not None and best.peak_bytes > request.memory_limit:
        return None
    return best


def _by_memory(request: PlanRequest, largest: float) -> Iterator[tuple[float, Configuration]]:
    """Yield configurations by the bound on their memory, up to the largest: of frames first, then of their variants."""
    space = Space.of(request)
    numbers = count()
    heap: list[tuple[float, int, object]] = []
    for frame in space.frames():
        bounds = space.bounds(frame)
        if bounds.state <= largest:
            heappush(heap, (bounds.state, next(numbers), (frame, bounds)))
    while heap:
        least, _, node = heappop(heap)
        if isinstance(node, Configuration):
            yield least, node
            continue
        frame, bounds = node  # type: ignore[misc]
        saving = _most_saving(space.savings(frame))
        if saving is None:
            continue
        for order in space.orders(frame):
            needed = bounds.bytes(order, saving["recompute"], saving["offload"])
            if needed <= largest:
                heappush(heap, (needed, next(numbers), as_configuration(request, {**frame, **order, **saving})))


def _most_saving(choices: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return whole layers recomputed where that is legal, else most modules; and the most moved away."""
    return max(
        choices,
        key=lambda each: ("full" in each["recompute"], len(each["recompute"]), each["offload"]),
        default=None,
    )


def closest_miss(request: PlanRequest) -> ClosestMiss | None:
    """The lowest peak of a request, and what would fit; None where nothing is legal."""
    lowest = thriftiest(request)
    if lowest is None:
        return None
    over = lowest.peak_bytes - request.memory_limit
    changes = list(islice(_changes(request, lowest), 2))
    return ClosestMiss(estimate=lowest, over_by=max(over, 0.0), change="; or ".join(changes))


def _changes(request: PlanRequest, lowest: Estimate) -> Iterator[str]:
    """Yield changes with which something fits, the cheapest first, each by an estimate."""
    yield from _without_fixed(request)
    whole = _with_all_moved(request, lowest)
    if whole is not None:
        yield f"moving all activations to the host needs {_gibibytes(whole)}"
    more = _on_more_gpus(request)
    if more is not None:
        yield f"{more.configuration.gpus:,} GPUs fit: {_degrees(more)} needs {_gibibytes(more)}"
    yield f"GPUs with {_gibibytes(lowest)} to allocate fit: {_degrees(lowest)}"
    shorter = _shorter(request)
    if shorter is not None:
        yield f"sequences of {shorter.configuration.sequence:,} tokens fit and need {_gibibytes(shorter)}"


def _without_fixed(request: PlanRequest) -> Iterator[str]:
    """Yield changes of one fixed choice."""
    for field, values in request.fixed.items():
        rest = {name: fixed for name, fixed in request.fixed.items() if name != field}
        found = thriftiest(replace(request, fixed=rest), must_fit=True)
        if found is not None:
            name = short_name(field)
            value = written(field, getattr(found.configuration, field, ""))
            asked = ",".join(written(field, each) for each in values)
            yield f"{name}={value} in place of {name}={asked} fits and needs {_gibibytes(found)}"


def _with_all_moved(request: PlanRequest, lowest: Estimate) -> Estimate | None:
    if "offload" in request.fixed or lowest.configuration.software.startswith("torchtitan"):
        return None
    moved = replace(lowest.configuration, offload=1.0)
    found = request.estimate(moved)
    return found if found.peak_bytes <= request.memory_limit else None


def _on_more_gpus(request: PlanRequest) -> Estimate | None:
    for factor in MORE_GPUS:
        cluster = replace(request.cluster, nodes=factor * request.cluster.nodes)
        fixed = {name: values for name, values in request.fixed.items() if name not in {"data"}}
        found = thriftiest(replace(request, cluster=cluster, fixed=fixed), must_fit=True)
        if found is not None:
            return found
    return None


def _shorter(request: PlanRequest) -> Estimate | None:
    sequence = request.sequence // 2
    while sequence >= 512:
        found = thriftiest(replace(request, sequence=sequence), must_fit=True)
        if found is not None:
            return found
        sequence //= 2
    return None


def _degrees(found: Estimate) -> str:
    here = found.configuration
    degrees = {"tp": here.tensor, "pp": here.pipeline, "cp": here.context, "dp": here.data, "ep": here.expert}
    return " ".join(f"{name}={degree}" for name, degree in degrees.items() if degree > 1) or "nothing split"


def _gibibytes(found: Estimate) -> str:
    return f"{found.peak_bytes / GIBIBYTE:.1f} GiB"
