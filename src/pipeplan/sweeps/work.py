"""What a worker does: calls the function for a batch of payloads, and sends back text."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeplan.documents import json_text
from pipeplan.errors import InputError, PipeplanError
from pipeplan.sweeps.task import Failure
from pipeplan.sweeps.version import version


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one payload: the answer as JSON, or the failure, and the seconds that the function took."""

    text: str | None
    failure: Failure | None
    seconds: float


def work_on(function: Callable[[Any], Any], payloads: Sequence[Any], sweep_version: str | None = None) -> list[Outcome]:
    """The outcomes of payloads, in their order.

    Parameters
    ----------
    sweep_version
        Of pipeplan where the sweep runs; None: here.

    Raises
    ------
    InputError
        Where the worker has another version of pipeplan.
    """
    if sweep_version not in {None, version()}:
        raise InputError(
            f"the worker has pipeplan {version()} and the sweep is run by {sweep_version}; install one version on both",
            field="dask",
        )
    return [_outcome(function, payload) for payload in payloads]


def _outcome(function: Callable[[Any], Any], payload: object) -> Outcome:
    """Whatever a function does but stop the program is an outcome."""
    begin = time.perf_counter()
    text, failure = None, None
    try:
        text = json_text(function(payload), compact=True)
    except PipeplanError as error:
        failure = Failure(kind="refused", error=type(error).__name__, message=str(error))
    except (Exception, SystemExit) as error:
        failure = Failure(
            kind="failed",
            error=type(error).__name__,
            message=str(error),
            trace="".join(traceback.format_exception(error)),
        )
    return Outcome(text, failure, time.perf_counter() - begin)
