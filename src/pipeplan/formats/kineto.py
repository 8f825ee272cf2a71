"""What PyTorch's profiler (Kineto) recorded of a pipeline run: traces of its ranks in, measured timelines out."""

from __future__ import annotations

from collections.abc import Mapping

from pipeplan.formats.format import Format
from pipeplan.formats.kineto_rank import parse_rank
from pipeplan.formats.traced_run import median_step, traced_run
from pipeplan.model import Timeline


def parse_kineto(traces: Mapping[str, str]) -> tuple[Timeline, ...]:
    """The measured timelines that the traces hold, one a step and replica, in milliseconds from its first start.

    Parameters
    ----------
    traces
        The traces' text by their names, which are used in messages: of every rank, each of one step or of several.

    Raises
    ------
    FormatError
        For text that is no trace or is cut off, a trace without pipeline annotations or with a part of a step, and for what
        :func:`~pipeplan.formats.traced_run.traced_run` raises it.
    """
    return traced_run([parse_rank(name, text) for name, text in traces.items()]).timelines


def _median_step(text: str, name: str, keep_duplicates: bool) -> Timeline:
    """The timeline of the step of median length."""
    return median_step(parse_kineto({name: text}))


FORMATS = (
    Format(
        name="kineto",
        title="PyTorch profiler trace",
        help="What PyTorch's profiler recorded of a run of one rank: its step of median length. Of more ranks, a folder.",
        ending=".json",
        media="application/json",
        read=_median_step,
        recognises=lambda text: '"traceEvents"' in text,
    ),
)
