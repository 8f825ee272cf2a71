"""Agreement of a pipeline's ranks before they communicate: otherwise they would wait for each other forever."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, get_args

import torch
import torch.distributed as dist
from torch import nn

from pipeplan.errors import InputError, PipeplanError, RunError
from pipeplan.model import Schedule
from pipeplan.runtime.model import error_line

Stages = Mapping[int, nn.Module] | Iterable[nn.Module]
"""Modules of this rank's stages: by the number of the stage, or in the order of the stages."""

Own = TypeVar("Own")
Shared = TypeVar("Shared")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _RankSummary:
    schedule: str
    torch: str
    device: str
    stages: tuple[int, ...] | None


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

    def find_own() -> tuple[Schedule, _RankSummary]:
        schedule = find()
        _require_modules(stages, schedule, dist.get_rank(group))
        numbers = tuple(stages) if isinstance(stages, Mapping) else None
        return schedule, _RankSummary(_fingerprint(schedule), str(torch.__version__), device.type, numbers)

    schedule, by_rank = on_all_ranks(find_own, group)
    # Every rank sees the same summaries and raises the same error, so none goes on alone.
    for name in ("schedule", "torch", "device"):
        _require_same(name, [getattr(facts, name) for facts in by_rank])
    _require_places(schedule, [facts.stages for facts in by_rank])
    return schedule, stages


def on_all_ranks(work: Callable[[], tuple[Own, Shared]], group: Any) -> tuple[Own, list[Shared]]:
    """Return this rank's own answer and the shared answers of all ranks. All ranks of the group call this together.

    Raises
    ------
    Exception
        If ``work`` raises it on this rank.
    PipeplanError
        If ``work`` raises an exception on another rank; the message names the rank.
    """
    own, mine, error = None, None, None
    try:
        own, mine = work()
    except Exception as failure:
        error = failure
    by_rank: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(by_rank, (mine, _presentable(error)), group=group)
    _raise_first(error, [failure for _, failure in by_rank])
    assert own is not None
    return own, [answer for answer, _ in by_rank]


def _raise_first(own: Exception | None, by_rank: Sequence[PipeplanError | None]) -> None:
    """Raise this rank's own error, or that of the first rank that has one."""
    if own is not None:
        raise own
    for rank, error in enumerate(by_rank):
        if error is not None:
            error.args = (f"on rank {rank}: {error}", *error.args[1:])
            raise error


def _presentable(error: Exception | None) -> PipeplanError | None:
    """Return an error as other ranks raise it."""
    if error is None or isinstance(error, PipeplanError):
        return error
    return RunError(error_line(error))


def from_first_rank(work: Callable[[], Answer]) -> Answer:
    """Return the answer of the first rank of the job, which alone does the work. Every rank calls this.

    Raises
    ------
    PipeplanError
        If the work raises it; then every rank raises it.
    """
    outcome: list[Any] = [None, None]
    if dist.get_rank() == 0:
        try:
            outcome = [work(), None]
        except PipeplanError as error:
            outcome = [None, error]
    dist.broadcast_object_list(outcome)
    answer, failure = outcome
    if failure is not None:
        raise failure
    return answer


class StepAgreement:
    """Exchange before every pass of a pipeline: either all ranks start it, or all raise.

    It takes one small all-reduce on the host; with a group of NCCL alone it is on the GPU, and waits for it.

    Parameters
    ----------
    group
        Process group of the pipeline.
    device
        Device of its stages.
    """

    def __init__(self, group: Any, device: torch.device) -> None:
        self._group = group
        self._device = torch.device("cpu") if "cpu:" in dist.get_backend_config(group) else device

    def before(self, what: Pass, prepare: Callable[[], tuple[Own, Sequence[int]]]) -> tuple[Own, list[int]]:
        """Return this rank's own preparation, and the largest of each of the ranks' numbers.

        Raises
        ------
        Exception
            If ``prepare`` raises it on this rank.
        PipeplanError
            If ``prepare`` raises an exception on another rank.
        InputError
            If the ranks are before different passes.
        """
        own, error = None, None
        numbers: Sequence[int] = (0,) * _NUMBERS
        try:
            own, numbers = prepare()
        except Exception as failure:
            error = failure
        kind = _PASSES.index(what)
        mine = torch.tensor([error is not None, kind, -kind, *numbers], device=self._device)
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=self._group)
        failed, highest, lowest, *largest = mine.tolist()
        if failed:
            by_rank: list[Any] = [None] * dist.get_world_size(self._group)
            dist.all_gather_object(by_rank, _presentable(error), group=self._group)
            _raise_first(error, by_rank)
        if highest != -lowest:
            other = _PASSES[highest if highest != kind else -lowest]
            raise InputError(
                f"this rank calls {what}() while another one calls {other}(): all ranks must call the same"
            )
        assert own is not None
        return own, largest


Pass = Literal["step", "eval"]
"""Method of a pipeline that all ranks call together."""

_PASSES: tuple[Pass, ...] = get_args(Pass)

_NUMBERS = 3
"""Number of integers that every rank passes to :meth:`StepAgreement.before`."""


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
