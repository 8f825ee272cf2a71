"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Required, TypedDict

from pipeplan.costs import ProfileOptionsKeywords, RunOptionsKeywords, SettingsKeywords

if TYPE_CHECKING:
    import os

    from pipeplan.api.arguments import ScheduleLike
    from pipeplan.api.planning.options import AllowLike, FilePath, FixLike
    from pipeplan.api.searching.options import Names
    from pipeplan.drawing import SizeName, ThemeName
    from pipeplan.model import Objective
    from pipeplan.planner import Objective as PlanObjective


class EverySearchOptionsKeywords(TypedDict, total=False):
    """Keywords of EverySearchOptions."""

    placement: str
    seconds: float | None
    seed: int
    workers: int | None
    full_backward: bool
    leave: Names


class ScheduleSearchOptionsKeywords(EverySearchOptionsKeywords, total=False):
    """Keywords of ScheduleSearchOptions."""

    objective: Objective
    evaluations: int | None
    start: ScheduleLike | list[ScheduleLike] | tuple[ScheduleLike, ...]
    dask: str | None
    store: str | os.PathLike[str] | None
    decide: Names


class SearchOptionsKeywords(ScheduleSearchOptionsKeywords, total=False):
    """Keywords of SearchOptions."""

    searches: int | None
    rounds: int
    jitter: float | None
    slow_rank: float | None


class ParetoOptionsKeywords(ScheduleSearchOptionsKeywords, total=False):
    """Keywords of ParetoOptions."""

    points: int


class SteadyStateOptionsKeywords(EverySearchOptionsKeywords, total=False):
    """Keywords of SteadyStateOptions."""

    most: int


class EstimateOptionsKeywords(TypedDict, total=False):
    """Keywords of EstimateOptions."""

    workers: int | None
    dask: str | None
    store: FilePath | None
    approximate: bool
    calibration: FilePath | None


class PlanKeywords(EstimateOptionsKeywords, total=False):
    """Keywords of PlanOptions."""

    global_batch: Required[int]
    sequence: Required[int]
    memory_limit: float | str | None
    objective: PlanObjective
    deadline: float | None
    tokens: float
    price: float | None
    fix: FixLike | None
    allow: AllowLike
    seconds: float | None


class CheckOptionsKeywords(TypedDict, total=False):
    """Keywords of CheckOptions."""

    trainer: str | None
    trainer_version: str | None


class CompareOptionsKeywords(TypedDict, total=False):
    """Keywords of CompareOptions."""

    leads: bool


class LookOptionsKeywords(TypedDict, total=False):
    """Keywords of LookOptions."""

    theme: ThemeName | None
    size: SizeName | None


class RearrangementOptionsKeywords(TypedDict, total=False):
    """Keywords of RearrangementOptions."""

    split_backward: bool
    retime: bool
    merge_backward: bool


class ConvertOptionsKeywords(RearrangementOptionsKeywords, LookOptionsKeywords, total=False):
    """Keywords of ConvertOptions."""

    to: str | None
    trainer_version: str | None


class DiffOptionsKeywords(TypedDict, total=False):
    """Keywords of DiffOptions."""

    configuration: FilePath | None
    calibration: FilePath | None


class TrainingKeywords(TypedDict, total=False):
    """Keywords of Training."""

    mtp_layers: int
    microbatch_size: int
    sequence_length: int | None
    data_parallel: int
    csv: str | None
    trainer_version: str | None


class ExportOptionsKeywords(RearrangementOptionsKeywords, TrainingKeywords, total=False):
    """Keywords of ExportOptions."""


class SearchKeywords(SettingsKeywords, SearchOptionsKeywords, total=False):
    """Options and settings of a function."""


class ParetoKeywords(SettingsKeywords, ParetoOptionsKeywords, total=False):
    """Options and settings of a function."""


class SteadyStateKeywords(SettingsKeywords, SteadyStateOptionsKeywords, total=False):
    """Options and settings of a function."""


class RunKeywords(SettingsKeywords, RunOptionsKeywords, total=False):
    """Options and settings of a function."""


class ProfileKeywords(SettingsKeywords, ProfileOptionsKeywords, total=False):
    """Options and settings of a function."""


class CheckKeywords(SettingsKeywords, CheckOptionsKeywords, total=False):
    """Options and settings of a function."""


class CompareKeywords(SettingsKeywords, CompareOptionsKeywords, total=False):
    """Options and settings of a function."""


class DiffKeywords(SettingsKeywords, DiffOptionsKeywords, total=False):
    """Options and settings of a function."""


class ExportKeywords(SettingsKeywords, ExportOptionsKeywords, total=False):
    """Options and settings of a function."""
