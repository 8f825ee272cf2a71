"""Results to files: the ending of a file chooses what is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pipeplan.api.results import Comparison, Result
from pipeplan.drawing import View, order_of, view_of
from pipeplan.drawing.html import save_html
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import replacing, require_apart, require_writable, write_text
from pipeplan.formats import chrome_trace, read_schedule_or_timeline, schedule_json, timeline_json, torch_csv
from pipeplan.model import Schedule
from pipeplan.passes.communication import without_communication
from pipeplan.strict_json import json_text

Answer = Result | Comparison

DRAWN = (".png", ".svg", ".pdf", ".html")
"""Endings of pictures and pages."""

PLANS = (".csv", ".json")
"""Endings of files that hold a plan, with times or without."""

MOST_EXPLAINED = 200_000
"""Ops and squares of ranks up to which an interactive timeline also says why ranks idle: beyond, the walk takes seconds."""


def save(answer: Answer, path: Path, *, ending: str | None = None) -> None:
    """Write a result or a comparison to a file, as a whole or not at all; ``ending`` overrides the file's own.

    Raises
    ------
    UnknownNameError
        For an ending that nobody knows.
    InputError
        If the file cannot be written, or holds one schedule and this is a comparison.
    """
    WRITERS[ending or _ending(path)](answer, path)


def holds_plan(path: Path) -> bool:
    """Whether :func:`save_schedule` writes files of this ending."""
    return _ending(path) in PLANS


def save_schedule(schedule: Schedule, path: Path) -> None:
    """Write a plan without times: its notation as CSV, or pipeplan JSON. Raises what :func:`save` does."""
    csv = _ending(path) == ".csv"
    write_text(path, torch_csv(without_communication(schedule)) if csv else schedule_json(schedule))


def require_outputs(paths: Iterable[Path]) -> None:
    """Check, before any work is done, that outputs have known endings and can be written. Raises what :func:`save` does."""
    for path in paths:
        _ending(path)
        require_writable(path)


def save_views(views: Sequence[View], path: Path) -> None:
    """Draw views to a picture or a page. Raises InputError for a file that is neither, or cannot be written."""
    ending = _ending(path)
    if ending not in DRAWN:
        raise InputError(f"{path} would hold a picture: its ending is one of {', '.join(DRAWN)}")
    (save_html if ending == ".html" else _draw)(views, path)


def convert_file(source: Path, target: Path) -> None:
    """Turn a file that holds a schedule or a timeline into another format, without simulating anything.

    Raises
    ------
    UnknownNameError
        For an ending that nobody knows.
    InputError
        If a file cannot be read or written, the target is the source, or a trace is wanted of a plan without times.
    PipeplanError
        For what :func:`~pipeplan.formats.reading.read_schedule_or_timeline` raises it.
    """
    ending = _ending(target)
    require_writable(target)
    require_apart([target], [source])
    plan = read_schedule_or_timeline(source)
    if ending == ".trace.json":
        if isinstance(plan, Schedule):
            raise InputError(
                f"{source} holds a plan, which has no times; 'pipeplan export {source} --to trace' gives them"
            )
        write_text(target, chrome_trace(plan))
    elif ending == ".csv":
        write_text(target, torch_csv(plan if isinstance(plan, Schedule) else plan.schedule))
    elif ending == ".json":
        write_text(target, schedule_json(plan) if isinstance(plan, Schedule) else timeline_json(plan))
    else:
        save_views([order_of(plan) if isinstance(plan, Schedule) else view_of(plan)], target)


def picture_name(name: str) -> str:
    """The file that ``simulate`` draws when no output is given."""
    return f"pipeline_{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.png"


def _ending(path: Path) -> str:
    name = path.name.lower()
    ending = max((known for known in WRITERS if name.endswith(known)), key=len, default=None)
    if ending is None:
        raise UnknownNameError("ending of an output", path.suffix or path.name, WRITERS)
    return ending


def _one(answer: Answer, path: Path) -> Result:
    if isinstance(answer, Comparison):
        raise InputError(f"{path} would hold one schedule, and this is a comparison: use .json or a picture")
    return answer


def _write_picture(answer: Answer, path: Path) -> None:
    _draw(answer.views() if isinstance(answer, Comparison) else [answer.view()], path)


def _draw(views: Sequence[View], path: Path) -> None:
    from pipeplan.drawing.static import save_picture

    with replacing(path) as temporary:
        save_picture(views, temporary)


def _write_html(answer: Answer, path: Path) -> None:
    results = answer.results if isinstance(answer, Comparison) else (answer,)
    walked = sum(len(result.schedule) + result.schedule.ranks**2 for result in results)
    save_html([result.view(reasons=walked <= MOST_EXPLAINED) for result in results], path)


def _write_json(answer: Answer, path: Path) -> None:
    if isinstance(answer, Comparison):
        write_text(path, json_text(answer.to_dict(), indent=1) + "\n")
    else:
        write_text(path, timeline_json(answer.timeline, answer.to_dict()))


def _write_csv(answer: Answer, path: Path) -> None:
    write_text(path, torch_csv(without_communication(_one(answer, path).schedule)))


def _write_trace(answer: Answer, path: Path) -> None:
    result = _one(answer, path)
    write_text(path, chrome_trace(result.timeline, result.memory))


WRITERS: dict[str, Callable[[Answer, Path], None]] = {
    ".png": _write_picture,
    ".svg": _write_picture,
    ".html": _write_html,
    ".pdf": _write_picture,
    ".json": _write_json,
    ".csv": _write_csv,
    ".trace.json": _write_trace,
}
"""What writes a file of each ending."""
