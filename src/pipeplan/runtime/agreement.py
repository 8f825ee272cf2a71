"""Check before the first step that all ranks of a pipeline agree: otherwise they would wait for each other forever."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from pipeplan.errors import InputError, PipeplanError
from pipeplan.model import Schedule

Stages = Mapping[int, nn.Module] | Iterable[nn.Module]
"""Modules of this rank's stages: by the number of the stage, or in the order of the stages."""


@dataclass(frozen=True, slots=True)
class _RankSummary:
    schedule: str
    torch: str
    device: str
    error: PipeplanError | None = None
    stages: tuple[int, ...] | None = None


def agreed(find: Callable[[], Schedule], stages: Stages, group: Any, device: torch.device) -> tuple[Schedule, Stages]:
    """Return the schedule from ``find`` and the stages, if all ranks of the group agree on them.

    All ranks call this together. If one of them finds an error, all raise it.

    Raises
    ------
    PipeplanError
        If ``find`` raises it on any rank.
    InputError
        If ranks have different schedules, versions of PyTorch or kinds of device, or a stage is on no rank, on two, or on
        another one than in the schedule.
    """
    stages = stages if isinstance(stages, Mapping) else tuple(stages)
    schedule, error = None, None
    try:
        schedule = find()
        _require_modules(stages, schedule, dist.get_rank(group))
    except PipeplanError as failure:
        error = failure
    mine = _RankSummary(
        schedule="" if schedule is None else _fingerprint(schedule),
        torch=str(torch.__version__),
        device=device.type,
        error=error,
        stages=tuple(stages) if isinstance(stages, Mapping) else None,
    )
    by_rank: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(by_rank, mine, group=group)
    # Every rank sees the same summaries and raises the same error, so none goes on alone.
    for rank, facts in enumerate(by_rank):
        if facts.error is not None:
            raise error if error is not None else _elsewhere(rank, facts.error)
    assert schedule is not None
    for name in ("schedule", "torch", "device"):
        _require_same(name, [getattr(facts, name) for facts in by_rank])
    _require_places(schedule, [facts.stages for facts in by_rank])
    return schedule, stages


def on_first_rank(check: Callable[[], None]) -> None:
    """Run a check on the first rank of the job. Every rank calls this, and raises the check's error.

    Raises
    ------
    PipeplanError
        If the check raises it.
    """
    errors: list[PipeplanError | None] = [None]
    if dist.get_rank() == 0:
        try:
            check()
        except PipeplanError as error:
            errors = [error]
    dist.broadcast_object_list(errors)
    if errors[0] is not None:
        raise errors[0]


def _elsewhere(rank: int, error: PipeplanError) -> PipeplanError:
    error.args = (f"on rank {rank}: {error}", *error.args[1:])
    return error


def _fingerprint(schedule: Schedule) -> str:
    # The name is left out: the same order may have been read from different files.
    columns = schedule.columns
    arrays = [schedule.placement.table, schedule.offsets, *(getattr(columns, part.name) for part in fields(columns))]
    return hashlib.sha256(b"|".join(array.tobytes() for array in arrays)).hexdigest()


def _require_same(name: str, by_rank: list[str]) -> None:
    if len(set(by_rank)) == 1:
        return
    if name == "schedule":
        other = next(rank for rank, value in enumerate(by_rank) if value != by_rank[0])
        raise InputError(
            f"ranks 0 and {other} have different schedules: run the search on one rank and load its file on all",
            field=name,
        )
    what = "version of PyTorch" if name == "torch" else "kind of device"
    values = ", ".join(f"rank {rank}: {value}" for rank, value in enumerate(by_rank))
    raise InputError(f"all ranks need the same {what}; {values}")


def _require_modules(stages: Mapping[int, nn.Module] | tuple[nn.Module, ...], schedule: Schedule, rank: int) -> None:
    """Check this rank's own modules. :func:`_require_places` checks the numbers of the stages over all ranks."""
    modules = list(stages.values() if isinstance(stages, Mapping) else stages)
    for module in modules:
        if not isinstance(module, nn.Module):
            raise InputError(f"a stage must be a torch.nn.Module, not a {type(module).__name__}", field="modules")
    if len({id(module) for module in modules}) < len(modules):
        raise InputError(
            f"rank {rank} passes the same module for two stages: each stage needs its own", field="modules"
        )
    mine = schedule.placement.stages_on(rank)
    if not isinstance(stages, Mapping) and len(modules) != len(mine):
        raise InputError(
            f"rank {rank} holds {len(mine)} stage(s) of {schedule.name or 'this schedule'} "
            f"({', '.join(map(str, mine))}), but {len(modules)} module(s) are passed: pass one for each, in this order",
            field="modules",
        )


def _require_places(schedule: Schedule, by_rank: list[tuple[int, ...] | None]) -> None:
    """Require that every stage is on its rank alone. None for a rank means stages in order, which are checked already."""
    ranks = {stage: [rank for rank, mine in enumerate(by_rank) if mine is not None and stage in mine] for stage in
             sorted({stage for mine in by_rank for stage in mine or ()} | set(range(schedule.stages)))}  # fmt: skip
    for stage, holders in ranks.items():
        if stage not in range(schedule.stages):
            raise InputError(
                f"rank {holders[0]} passes a module for stage {stage}, but the schedule has the stages 0 to "
                f"{schedule.stages - 1}",
                field="modules",
            )
        wanted = int(schedule.placement.table[0][stage])
        ranks_given = sorted({*holders, wanted} if by_rank[wanted] is None else holders)
        if ranks_given == [wanted]:
            continue
        where = f"on rank {' and rank '.join(map(str, ranks_given))}" if ranks_given else "on no rank"
        raise InputError(
            f"stage {stage} is passed {where}, but the schedule has it on rank {wanted}: pass its module there, and only "
            "there",
            field="modules",
        )
