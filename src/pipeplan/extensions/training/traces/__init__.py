"""Traces of runs: PyTorch's profiler and Nsight Systems, as measured timelines."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "kineto": "parse_kineto",
    "run_files": "holds_run read_run",
    "traced_run": "MeasuredRun median_step",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
