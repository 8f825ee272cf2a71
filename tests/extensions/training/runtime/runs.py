"""Runs whose options are keywords."""

from typing import Any

from pipeplan.costs import options_of
from pipeplan.extensions.training.options import RunOptions
from pipeplan.extensions.training.runtime.results import RunResult
from pipeplan.extensions.training.runtime.running import run_with
from pipeplan.model import Schedule
from pipeplan.runtime import Model


def run(schedule: Schedule, model: str | Model = "gpt-tiny", **options: Any) -> RunResult:
    """Train for some steps with a schedule and the options of :class:`pipeplan.extensions.training.options.RunOptions`."""
    return run_with(schedule, options_of(RunOptions, {"model": model, **options}))
