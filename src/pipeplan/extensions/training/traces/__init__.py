"""Traces of runs: PyTorch's profiler and Nsight Systems, as measured timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.extensions.training.traces.kineto import parse_kineto as parse_kineto
    from pipeplan.extensions.training.traces.run_files import holds_run as holds_run
    from pipeplan.extensions.training.traces.run_files import read_run as read_run
    from pipeplan.extensions.training.traces.traced_run import MeasuredRun as MeasuredRun
    from pipeplan.extensions.training.traces.traced_run import median_step as median_step

    __all__: list[str]
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
