"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from pipeplan.costs import DeviceOptionsKeywords, MeasuringOptionsKeywords, SettingsKeywords

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pipeplan.answers.answers import FilePath
    from pipeplan.extensions.training.options import DataType, Layered
    from pipeplan.passes import Receives


class ModelOptionsKeywords(DeviceOptionsKeywords, total=False):
    """Keywords of ModelOptions."""

    model: str | Layered
    layout: Sequence[int] | None
    seed: int
    timeout: float
    dtype: DataType | None


class RunOptionsKeywords(ModelOptionsKeywords, total=False):
    """Keywords of RunOptions."""

    steps: int
    warmup: int
    verify: bool
    receives: Receives
    learning_rate: float
    kineto: str | os.PathLike[str] | None


class ProfileOptionsKeywords(ModelOptionsKeywords, MeasuringOptionsKeywords, total=False):
    """Keywords of ProfileOptions."""

    warmup: int
    per_layer: bool


class DiffOptionsKeywords(TypedDict, total=False):
    """Keywords of DiffOptions."""

    configuration: FilePath | None
    calibration: FilePath | None


class RunKeywords(SettingsKeywords, RunOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.run`."""


class ProfileKeywords(SettingsKeywords, ProfileOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.profile`."""


class DiffKeywords(SettingsKeywords, DiffOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.diff`."""
