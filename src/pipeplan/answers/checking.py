"""Check that a schedule is valid and would run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, final, get_args

import msgspec
from msgspec import UNSET, UnsetType

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.arguments import ScheduleLike, options_and_settings
from pipeplan.answers.sharding import sharded, sharding_used
from pipeplan.answers.simulating.simulate import messages
from pipeplan.answers.sources import Source, file_of, label, opened, resolve
from pipeplan.checking import Finding, check_times, finding, marked_grid
from pipeplan.checking import check as check_schedule
from pipeplan.costs import SETTINGS, Options, Settings, option
from pipeplan.drawing import View, order_of
from pipeplan.formats import SIZE_LIMIT, TORCH_RELEASES, has_waits, is_printed_by_torch, torch_release, unpacked_name
from pipeplan.foundation.errors import InputError, InvalidScheduleError
from pipeplan.foundation.files import read_text
from pipeplan.foundation.names import TrainerName
from pipeplan.foundation.records import Evidence, holding
from pipeplan.model import COMMUNICATION_KINDS, MemoryRule, Schedule, Timeline, counted
from pipeplan.strategies import Strategy
from pipeplan.trainers import refusal, trainer_kind

if TYPE_CHECKING:
    from pipeplan.answers.keywords import CheckKeywords
    from pipeplan.answers.parts import Part


@final
class Verdict(AnswerRecord, frozen=True, kw_only=True, eq=False):
    """Result of a check.

    ``to_frame()`` has a row per problem. Where the rows of a file make no schedule, its JSON has neither notes nor a shape.

    Attributes
    ----------
    valid
        True if there are no problems.
    problems
        Everything that is wrong.
    """

    valid: bool
    problems: tuple[Finding, ...]
    written_notes: tuple[Finding, ...] | UnsetType = msgspec.field(name="notes", default=UNSET)
    schedule_name: str | UnsetType = msgspec.field(name="schedule", default=UNSET)
    ranks: int | UnsetType = UNSET
    stages: int | UnsetType = UNSET
    microbatches: int | UnsetType = UNSET
    ops: int | UnsetType = UNSET

    name = Evidence[str]()
    """Name or file that was checked."""

    schedule = Evidence[Schedule | None]()
    """The schedule; None if the rows of a file make none."""

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Notes on things that are valid, but fail on some runtimes or cost more than necessary."""
        return () if self.written_notes is UNSET else self.written_notes

    def _views(self) -> Sequence[View]:
        """Return the view of the order of ops; empty without a schedule."""
        return [] if self.schedule is None else [order_of(self.schedule)]

    def _table(self) -> Iterator[Part]:
        """Return the problems with the first faulty op marked, or the shape of a valid schedule; then the notes."""
        schedule = self.schedule
        if self.problems:
            yield f"{self.name} has {counted(len(self.problems), 'problem')}:"
            yield from (f"  {problem}" for problem in self.problems)
            if schedule is not None and self.problems[0].position is not None:
                yield ""
                yield marked_grid(schedule, self.problems[0].position)
        elif schedule is not None:
            ops, microbatches = counted(len(schedule), "op"), counted(schedule.microbatches, "microbatch")
            shape = (
                f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')} ({schedule.placement.name})"
            )
            yield f"{self.name} is valid: {shape}, {microbatches}, {ops}"
        yield from (f"note: {note}" for note in self.notes)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [problem.to_dict() for problem in self.problems]

    def __repr__(self) -> str:
        return f"<Verdict on {self.name}: {'valid' if self.valid else f'{len(self.problems)} problem(s)'}>"


def _verdict(
    name: str, schedule: Schedule | None, problems: tuple[Finding, ...], notes: tuple[Finding, ...] = ()
) -> Verdict:
    shape: dict[str, Any] = {}
    if schedule is not None:
        shape = {
            "written_notes": notes,
            "schedule_name": schedule.name,
            "ranks": schedule.ranks,
            "stages": schedule.stages,
            "microbatches": schedule.microbatches,
            "ops": len(schedule),
        }
    return holding(Verdict(valid=not problems, problems=problems, **shape), name=name, schedule=schedule)


class _Rules(TypedDict, total=False):
    waits: bool
    pytorch: bool


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """Options of a check."""

    trainer: str | None = option(
        kind="name",
        group="trainer",
        choices=get_args(TrainerName),
        flags=("--for",),
        keyword="TrainerName | str | None",
        help="Trainer to check for: report what it refuses or would train with wrong gradients. For PyTorch the schedule "
        "itself is checked, for the others whether it can be exported to them.",
    )
    trainer_version: str | None = option(
        kind="text",
        group="trainer",
        help="Release of PyTorch, with --for pytorch.",
        default=f"the installed one, else {TORCH_RELEASES[-1]}",
    )


def check(schedule: ScheduleLike, /, **options: Unpack[CheckKeywords]) -> Verdict:
    """Check a schedule: structure, order, deadlock, channels, and with ``memory_limit`` its memory.

    Parameters
    ----------
    schedule
        A file, a strategy's name or a schedule. Of a timeline the order of ops is checked, and of a simulated one the times:
        every op starts after what it waits for.
    **options
        The options of a check, and of the shape and costs what it depends on: ``memory_limit`` with its bytes,
        ``communication="blocking"`` for sends that wait for their receives, ``"streams"`` for messages that run in order on
        communication streams.

    Other Parameters
    ----------------
    trainer
        Trainer to check for: report what it refuses or would train with wrong gradients. For PyTorch the schedule
        itself is checked, for the others whether it can be exported to them.
    trainer_version
        Release of PyTorch, with --for pytorch (default: the installed one, else 2.15).
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    InputError
        For a file that cannot be read or understood, impossible settings, and an unknown release.
    UnknownNameError
        For an unknown trainer.

    Examples
    --------
    >>> pipeplan.check("1f1b", ranks=4, microbatches=8, memory_limit="3act").problems[0].rule
    'memory'
    """
    return checked(schedule, *options_and_settings(CheckOptions, options))


def checked(schedule: ScheduleLike, options: CheckOptions, settings: Settings) -> Verdict:
    """See :func:`check`."""
    rules = _rules_of(options.trainer, options.trainer_version)
    name, path = label(schedule), file_of(schedule)
    try:
        source = opened(schedule, keep_duplicates=True)
        resolved = resolve(source, settings, of_measured=True)
    except InvalidScheduleError as error:
        # The file was read, but its rows make no schedule that could be looked at further.
        return _verdict(name, None, (finding("structure", name, str(error)),))
    csv = path if path is not None and unpacked_name(path.name).lower().endswith(".csv") else None
    if csv is not None and isinstance(source, Schedule) and _runs_pytorch(options.trainer):
        rules = {"pytorch": True, **rules}  # the format is PyTorch's
        problems = tuple(_blank_cells(csv, resolved))
        if problems:
            return _verdict(name, resolved, problems)
    elif path is not None and isinstance(source, Schedule) and options.trainer is None and _is_printed(path, source):
        rules = {"pytorch": True}
    if sharding_used(resolved, settings) not in (None, "own") and check_schedule(resolved, **rules).valid:
        resolved = sharded(resolved, settings)
        # They held without the collectives, which PyTorch adds itself.
        rules.pop("pytorch", None)
    report = check_schedule(resolved, memory=memory_rule(resolved, settings), **messages(settings), **rules)
    problems = report.problems
    if isinstance(source, Timeline) and not problems:
        problems = tuple(check_times(source))
    if options.trainer is not None and not problems:
        reason = refusal(options.trainer, resolved)
        problems = (finding("trainer", "", reason),) if reason else ()
    return _verdict(name, resolved, problems, (*report.notes, *_unused(source, settings)))


def _unused(source: Source, settings: Settings) -> Iterator[Finding]:
    """Yield a note that names the times that no rule looks at, unless the order of ops depends on times."""
    if settings.offload not in ("none", ()) or (isinstance(source, Strategy) and source.looks_at_costs):
        return
    if names := [name for name in settings.changed if name in _OF_TIMES]:
        yield finding("settings", "", f"a check does not simulate: {', '.join(names)} have no effect")


_OF_ORDERS = ("unshard_times", "reduce_times", "offload_times")
"""Settings of times with which a schedule has further ops."""

_OF_TIMES = (
    *(name for name, setting in SETTINGS.items() if setting.unit in ("time", "shares") and name not in _OF_ORDERS),
    "segments",
    "pair_slowdown",
    "delayed_weights",
    "times_per",
    "p2p_bytes",
    "p2p_bandwidth",
    "machine",
    "attention_model",
)
"""Settings on which only times depend."""


def _rules_of(trainer: str | None, release: str | None) -> _Rules:
    """Return the rules of a trainer that no other has. Raises InputError for a wrong release."""
    if trainer != "pytorch":
        if release is not None:
            raise InputError("trainer_version needs trainer pytorch", field="trainer_version")
        return {}
    return {"waits": has_waits(torch_release(release)), "pytorch": True}


def _runs_pytorch(trainer: str | None) -> bool:
    """Return True if a trainer runs PyTorch's schedules, so that it takes a CSV as it is; no trainer means PyTorch."""
    return trainer is None or "pytorch" in trainer_kind(trainer).scopes


def _is_printed(path: Path, schedule: Schedule) -> bool:
    """Return True for an order of compute ops that PyTorch printed; with messages, they depend on its release."""
    if not schedule.kinds.isdisjoint(COMMUNICATION_KINDS) or unpacked_name(path.name).lower().endswith(".json"):
        return False
    return is_printed_by_torch(read_text(path, limit=SIZE_LIMIT, what="schedule file"))


def _blank_cells(path: Path, schedule: Schedule) -> Iterator[Finding]:
    """Yield the first blank cell of a CSV that has messages: PyTorch reads bubbles only beside ops that compute."""
    if schedule.kinds.isdisjoint(COMMUNICATION_KINDS):
        return
    text = read_text(path, limit=SIZE_LIMIT, what="schedule file")
    for rank, line in enumerate(() if is_printed_by_torch(text) else text.splitlines()):
        cells = line.split(",")
        place = next((place for place, cell in enumerate(cells) if not cell.strip()), None)
        if place is not None:
            message = "is blank: PyTorch refuses blank cells in a schedule with SEND and RECV"
            yield finding("form", f"rank {rank}, cell {place}", message)
            return


def memory_rule(schedule: Schedule, settings: Settings) -> MemoryRule | None:
    """Return the memory rule of the settings; None without a memory limit."""
    limits = settings.limits(schedule.placement)
    return None if limits is None else settings.costs(schedule.placement).memory.rule(schedule.placement, limits)
