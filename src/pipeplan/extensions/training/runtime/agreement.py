"""Agreement of a pipeline's ranks before they communicate: otherwise they would wait for each other forever."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from pipeplan.extensions.training.runtime.model import error_line
from pipeplan.extensions.training.runtime.torch_internals import NeighbourFailed
from pipeplan.foundation.errors import InputError, PipeplanError, RunError
from pipeplan.model import Schedule

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
    rank = dist.get_rank(group)
    by_rank: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(by_rank, (mine, _Failure.of(error, rank, f"rank {rank}")), group=group)
    if error is not None:
        raise error
    _raise_first([failure for _, failure in by_rank])
    assert own is not None
    return own, [answer for answer, _ in by_rank]


def innermost(error: BaseException) -> BaseException:
    """Return the innermost cause of an error, or the first one of pipeplan's: PyTorch wraps exceptions of modules."""
    while error.__cause__ is not None and not isinstance(error, PipeplanError):
        error = error.__cause__
    return error


@dataclass(frozen=True, slots=True)
class _Failure:
    """Error of a rank as the other ranks raise it.

    Attributes
    ----------
    follows
        True if it follows from an error of another rank.
    when
        Time of the error in nanoseconds: what a rank computes from a failed neighbour's messages may fail later.
    rank
        Number of the rank.
    error
        The error, whose message names the rank.
    """

    follows: bool
    when: int
    rank: int
    error: PipeplanError

    @classmethod
    def of(cls, error: Exception | None, rank: int, place: str) -> _Failure | None:
        """Return an error as a failure, by its innermost cause."""
        if error is None:
            return None
        cause = innermost(error)
        if isinstance(cause, PipeplanError):
            shown = copy.copy(cause)
            shown.args = (f"on {place}: {cause}", *cause.args[1:])
        else:
            shown = RunError(f"on {place}: {error_line(cause)}")
        return cls(isinstance(error, NeighbourFailed), time.time_ns(), rank, shown)


def _raise_first(failures: Sequence[_Failure | None], own: Exception | None = None, rank: int | None = None) -> None:
    """Raise the first error, from which the others may follow; on its rank as it is, on the others with its place."""
    failed = [failure for failure in failures if failure is not None]
    if not failed:
        return
    first = min(failed, key=lambda failure: (failure.follows, failure.when, failure.rank))
    if own is not None and first.rank == rank:
        raise own
    vars(first.error)[_ELSEWHERE] = True
    raise first.error from None


_ELSEWHERE = "raised_elsewhere"


def is_from_elsewhere(error: BaseException) -> bool:
    """Return whether an error was raised on another rank first."""
    return bool(vars(error).get(_ELSEWHERE, False))


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


class PassAgreement:
    """Exchanges of the ranks before and after a pass: either all of them go on, or all raise.

    Each exchange is one small all-reduce. If the group has a backend for the CPU, it does not wait for a GPU.

    Parameters
    ----------
    group
        Process group of the pipeline.
    device
        Device of the stages.
    """

    def __init__(self, group: Any, device: torch.device) -> None:
        self._rank, self._group = dist.get_rank(group), group
        self._device = torch.device("cpu") if "cpu:" in dist.get_backend_config(group) else device

    def together(
        self, work: Callable[[], tuple[Own, Sequence[int]]], numbers: int = 0, place: Callable[[], str] | None = None
    ) -> tuple[Own, list[int]]:
        """Do this rank's work. Return its own answer, and the largest of each of the ranks' numbers.

        Parameters
        ----------
        work
            Function that returns the answer and this rank's numbers.
        numbers
            How many numbers each rank has.
        place
            Function that returns the place of the rank in words, if an error of one rank may follow from one of another.

        Raises
        ------
        Exception
            If ``work`` raises it on this rank.
        PipeplanError
            If ``work`` raises an exception on another rank; the message names its place.
        """
        own, error = None, None
        mine: Sequence[int] = (0,) * numbers
        try:
            own, mine = work()
        except Exception as failure:
            error = failure
        where = f"rank {self._rank}"
        if place is not None and error is not None:
            where = place()
            error.add_note(f"on {where}")
        counts = torch.tensor([int(error is not None), *mine], device=self._device)
        failures: list[Any] = [None] * dist.get_world_size(self._group)
        try:
            dist.all_reduce(counts, dist.ReduceOp.MAX, group=self._group)
            failed, *largest = counts.tolist()
            if failed:
                dist.all_gather_object(failures, _Failure.of(error, self._rank, where), group=self._group)
        except RuntimeError:
            # The other ranks cannot be reached: they may have ended.
            if error is not None:
                raise error from None
            raise
        if error is not None and place is None:
            raise error
        _raise_first(failures, error, self._rank)
        assert own is not None
        return own, largest


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
    ranks = {
        stage: [rank for rank, mine in enumerate(by_rank) if mine is not None and stage in mine]
        for stage in sorted({stage for mine in by_rank for stage in mine or ()} | set(range(schedule.stages)))
    }
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
