"""Explanation when no configuration is valid or none fits: the broken rule, the closest miss, and the cheapest change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from typing import Any

from pipeplan.extensions.planning.choice.branching import Space
from pipeplan.extensions.planning.choice.candidates import FRAME_FIELDS, as_configuration, drafts, frames, variants
from pipeplan.extensions.planning.choice.describing import degrees_in_words, described
from pipeplan.extensions.planning.choice.legality import RULES, Rule, excludes
from pipeplan.extensions.planning.choice.request import PlanRequest, short_name, written
from pipeplan.extensions.planning.choice.work import Work
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.plan_records import MissRecord
from pipeplan.extensions.planning.results import Estimate
from pipeplan.foundation.errors import PipeplanError, ShapeError
from pipeplan.foundation.files import GIBIBYTE


def refusal(request: PlanRequest) -> ShapeError | None:
    """Return the error for a request without a valid configuration; None if it has one.

    The reported rule is one without which there would be a configuration; if several rules exclude them only
    together, the one that refused the most drafts.
    """
    refusals: Counter[str] = Counter()
    if next(drafts(request, refusals), None) is not None:
        return None
    # Try without one rule after the other, the most frequent refusals first.
    names = [name for name, _ in refusals.most_common()]
    alone = (name for name in names if next(drafts(request, without=frozenset({name})), None) is not None)
    broken = next(alone, names[0])
    rule = next(rule for rule in RULES if rule.name == broken)
    remedy = _nearest_batches(request) if rule.name == "batch" else _legal_values(request, rule)
    field = "global_batch" if rule.name == "batch" and "data" not in request.fixed else "fix"
    message = f"no valid configuration{_fixed_in_words(request)}: {rule.sentence(request)}{remedy}"
    return ShapeError(message, field=field)


def _fixed_in_words(request: PlanRequest) -> str:
    fixed = " ".join(
        f"{short_name(field)}={','.join(written(field, value) for value in values)}"
        for field, values in request.fixed.items()
        if not (field == "software" and "trainer" in request.fixed)
    )
    return f" with {fixed}" if fixed else ""


def _nearest_batches(request: PlanRequest) -> str:
    """Return the nearest global batches that some frame could divide, in words."""
    # Batch sizes that the frames would divide if the batch were not fixed.
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
    near = [str(size) for size in dict.fromkeys((below, above)) if size > 0]
    return f"; nearest valid batch: {' or '.join(near)}" if near else ""


def _legal_values(request: PlanRequest, rule: Rule) -> str:
    """Return in words the values of a fixed field for which a valid configuration exists."""
    for field in request.fixed:
        if field not in rule.needs:
            continue
        fixed = {name: values for name, values in request.fixed.items() if name != field}
        freed = replace(request, fixed=fixed)
        if field in FRAME_FIELDS:
            valid = {written(field, frame[field]) for frame in islice(_whole(freed), 20_000)}
        else:
            valid = {
                written(field, draft[field]) for draft in islice(drafts(freed), 20_000) if draft.get(field) is not None
            }
        if valid:
            return f"; valid values of {short_name(field)}: {', '.join(sorted(valid, key=_order)[:12])}"
    return ""


def _whole(request: PlanRequest) -> Iterator[dict[str, Any]]:
    return (frame for frame in frames(request) if next(variants(request, frame), None) is not None)


def _order(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (0, text)


MOST_ESTIMATES = 48
"""Maximum number of estimates in a search for the lowest peak: memory bounds are tight, so the first few decide."""

MORE_GPUS = (2, 4, 8, 16, 32, 64)
"""Factors on the number of nodes that are tried."""


def thriftiest(request: PlanRequest, *, must_fit: bool = False, work: Work | None = None) -> Estimate | None:
    """Return the configuration with the lowest peak, or the first that fits; None if none is valid.

    Configurations are estimated in the order of their memory bounds, until no bound is below the lowest peak. ``must_fit``
    returns None if nothing fits within the limit of the work, and skips configurations whose parameters alone do not.
    Without it, at least one configuration is estimated.
    """
    best: Estimate | None = None
    largest = request.memory_limit if must_fit else inf
    work = Work() if work is None else work
    if must_fit and work.over:
        return None
    for least, configuration in islice(_by_memory(request, largest, work), MOST_ESTIMATES):
        if work.over and (must_fit or best is not None):
            break
        if best is not None and (best.peak_bytes <= least or best.peak_bytes <= request.memory_limit):
            break
        work.add(estimated=1)
        try:
            estimate = request.estimate(configuration)
        except PipeplanError:
            continue
        if best is None or estimate.peak_bytes < best.peak_bytes:
            best = estimate
    if must_fit and best is not None and best.peak_bytes > request.memory_limit:
        return None
    return best


def _by_memory(request: PlanRequest, largest: float, work: Work) -> Iterator[tuple[float, Configuration]]:
    """Yield configurations in the order of their memory bounds, up to the largest: frames first, then their variants.

    From the limit of the work on, frames are left out, unless none has given a configuration.
    """
    space = Space.of(request)
    numbers = count()
    heap: list[tuple[float, int, object]] = []
    any_configuration = False
    for frame in space.frames():
        bounds = space.bounds(frame)
        if bounds.state <= largest:
            heappush(heap, (bounds.state, next(numbers), (frame, bounds)))
    while heap:
        least, _, node = heappop(heap)
        if isinstance(node, Configuration):
            yield least, node
            continue
        if any_configuration and work.over:
            continue
        work.add(bounded=1)
        frame, bounds = node  # type: ignore[misc]
        saving = _most_saving(space.savings(frame))
        if saving is None:
            continue
        for order in space.orders(frame):
            needed = bounds.bytes(order, saving["recompute"], saving["offload"])
            if needed <= largest and not excludes(order["schedule"], saving["recompute"]):
                any_configuration = True
                heappush(heap, (needed, next(numbers), as_configuration(request, {**frame, **order, **saving})))


def _most_saving(choices: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the saving with whole layers recomputed if valid, otherwise with the most modules, and the most offload."""
    return max(
        choices,
        key=lambda saving: ("full" in saving["recompute"], len(saving["recompute"]), saving["offload"]),
        default=None,
    )


def closest_miss(request: PlanRequest, limit: float, seconds: float = inf) -> MissRecord | None:
    """Return the lowest peak of a request and what would fit, searched for with the work of some nominal seconds.

    None if no configuration is valid.

    ``limit`` is the memory that the peak is compared with: the request's may be wider, by the error of predictions.
    """
    lowest = thriftiest(request, work=Work(seconds / 2))
    if lowest is None:
        return None
    changes = list(islice(_changes(request, lowest, Work(seconds / 2)), 2))
    more_memory = f"with {_gibibytes(lowest)} of usable memory per GPU, {degrees_in_words(lowest.configuration)} fits"
    return MissRecord(
        **described(request.model, request.cluster, lowest),
        over_by_gib=(lowest.peak_bytes - limit) / GIBIBYTE,
        change="; or ".join(changes) or more_memory,
    )


def _changes(request: PlanRequest, lowest: Estimate, work: Work) -> Iterator[str]:
    """Yield changes with which something fits, the cheapest first, each confirmed by an estimate within the work's limit."""
    yield from _without_fixed(request, work)
    whole = _with_all_moved(request, lowest)
    if whole is not None:
        yield f"offloading all activations needs {_gibibytes(whole)}"
    more = _on_more_gpus(request, work)
    if more is not None:
        yield f"with {more.configuration.gpus:,} GPUs, {degrees_in_words(more.configuration)} needs {_gibibytes(more)}"
    shorter = _shorter(request, work)
    if shorter is not None:
        yield f"with sequences of {shorter.configuration.sequence:,} tokens it needs {_gibibytes(shorter)}"


def _without_fixed(request: PlanRequest, work: Work) -> Iterator[str]:
    for field, values in request.fixed.items():
        rest = {name: other for name, other in request.fixed.items() if name != field}
        estimate = thriftiest(replace(request, fixed=rest), must_fit=True, work=work)
        if estimate is not None:
            name = short_name(field)
            better = written(field, getattr(estimate.configuration, field, ""))
            fixed = ",".join(written(field, value) for value in values)
            yield f"{name}={better} instead of {name}={fixed} needs {_gibibytes(estimate)}"


def _with_all_moved(request: PlanRequest, lowest: Estimate) -> Estimate | None:
    if "offload" in request.fixed or lowest.configuration.software.startswith("torchtitan"):
        return None
    moved = replace(lowest.configuration, offload=1.0)
    estimate = request.estimate(moved)
    return estimate if estimate.peak_bytes <= request.memory_limit else None


def _on_more_gpus(request: PlanRequest, work: Work) -> Estimate | None:
    for factor in MORE_GPUS:
        cluster = replace(request.cluster, nodes=factor * request.cluster.nodes)
        fixed = {name: values for name, values in request.fixed.items() if name not in {"data"}}
        estimate = thriftiest(replace(request, cluster=cluster, fixed=fixed), must_fit=True, work=work)
        if estimate is not None:
            return estimate
    return None


def _shorter(request: PlanRequest, work: Work) -> Estimate | None:
    sequence = request.sequence // 2
    while sequence >= 512:
        estimate = thriftiest(replace(request, sequence=sequence), must_fit=True, work=work)
        if estimate is not None:
            return estimate
        sequence //= 2
    return None


def _gibibytes(estimate: Estimate) -> str:
    return f"{estimate.peak_bytes / GIBIBYTE:.1f} GiB"
