"""Work of the server's processes: from a request about schedules to the bytes of the reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeplan.answers import (
    Allowed,
    Explanation,
    NeedsLike,
    Result,
    all_formats,
    comparison_of_results,
    content_as,
    contents_of,
    explained,
    load_config,
    shipped_costs,
    timed,
    training_of,
)
from pipeplan.costs import SETTINGS, Config, Settings
from pipeplan.extensions.web.faults import as_json, at_field, fault
from pipeplan.extensions.web.records import (
    CompareReply,
    ConfigReply,
    DrawReply,
    Fault,
    Faults,
    FormatEntry,
    RefusedSchedule,
)
from pipeplan.extensions.web.requests import CompareIn, DownloadIn, DrawIn, ExplainIn, FileIn
from pipeplan.extensions.web.schedules import (
    Simulated,
    Source,
    can_be_explained,
    choose,
    drawing_of,
    only_one,
    read_file,
    simulate_all,
    views,
)
from pipeplan.extensions.web.thumbnails import thumbnail
from pipeplan.formats import Content, Format, Training, endings
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError, ShapeError
from pipeplan.foundation.files import file_name, temporary_folder
from pipeplan.foundation.records import Record
from pipeplan.model import Timeline, counted
from pipeplan.strategies import is_strategy, strategy

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """Body of a reply, with its status, media type and name as a file.

    Attributes
    ----------
    warnings
        Sentences about a file, such as a change to the order of a schedule; sent as a header.
    """

    body: bytes
    status: int = 200
    media: str = JSON
    filename: str | None = None
    warnings: tuple[str, ...] = ()


def refused(*faults: Fault) -> Reply:
    """Return a refusal, with each fault once."""
    once = {(fault.field, fault.message): fault for fault in faults}
    return Reply(as_json(Faults(errors=tuple(once.values()))), 422)


def json_reply(record: Record) -> Reply:
    """Return a record as JSON; infinities and NaN become null."""
    return Reply(as_json(record))


_MOST_ROWS = 10
"""Maximum number of schedules of a comparison that leaves some out."""


def compare(request: CompareIn) -> Reply:
    """Return the figures of every schedule, why others have none, and the timelines of some."""
    simulated = simulate_all(request)
    if not simulated.results:
        return refused(*simulated.faults.values())
    drawn, undrawn = choose(simulated.results, request.draw)
    comparison = comparison_of_results(simulated.results, simulated.allowed)
    rows = _MOST_ROWS if simulated.left_out else len(simulated.results)
    return json_reply(
        CompareReply(
            headline=comparison.headline,
            results=comparison.results[:rows],
            allowed=comparison.allowed,
            faster_with_more=comparison.faster_with_more,
            refused=tuple(
                RefusedSchedule(schedule=name, field=fault.field, message=fault.message)
                for name, fault in simulated.faults.items()
            ),
            warnings=comparison.warnings,
            least_bound=comparison.least,
            drawn=tuple(result.name for result in drawn),
            undrawn=tuple(undrawn),
            timeline=drawing_of(drawn, reasons=request.reasons),
            thumbnails=tuple(thumbnail(result.timeline) for result in simulated.results[:rows]),
            left_out=_left_out(simulated),
        )
    )


def _left_out(simulated: Simulated) -> str:
    """Return a sentence about the schedules that a large comparison leaves out; empty if there are none."""
    count = len(simulated.results)
    if not simulated.left_out:
        return ""
    rows = f"the fastest {_MOST_ROWS} of {count} schedules" if count > _MOST_ROWS else counted(count, "schedule")
    names = ", ".join(simulated.left_out)
    return f"Large shape: shows {rows}; not computed here, but by 'pipeplan compare': {names}."


def draw(request: DrawIn) -> Reply:
    """Return the timelines of all schedules of the request."""
    simulated = simulate_all(request)
    if not simulated.results:
        return refused(*simulated.faults.values())
    names = [*request.schedules, *(file.name for file in request.files)]
    drawn, undrawn = choose(simulated.results, names)
    return json_reply(
        DrawReply(
            drawn=tuple(result.name for result in drawn),
            undrawn=tuple(undrawn),
            timeline=drawing_of(drawn, reasons=request.reasons),
        )
    )


def explain(request: ExplainIn) -> Reply:
    """Return why each rank idles, the critical path, and what would help."""
    return json_reply(explanation(*only_one(request), allow=request.allow))


def explanation(source: Source, settings: Settings, *, allow: NeedsLike | None = None) -> Explanation:
    """Explain a schedule that is small enough to be explained in a moment."""
    if not can_be_explained([timed(source, settings)]):
        raise InputError("too large to be explained here: 'pipeplan explain' has no such limit")
    return explained(source, settings, allow=allow)


# Config files and presets.


def config(upload: tuple[str, bytes]) -> Reply:
    """Return the settings of a config or profile file."""
    name, content = upload
    with temporary_folder() as folder:
        path = folder / f"file{_extension(name)}"
        path.write_bytes(content)
        try:
            loaded = load_config(path)
        except PipeplanError as error:
            return refused(Fault(field="file", message=fault(error).message.replace(str(path), f"'{name}'")))
    return config_reply(loaded)


def _extension(name: str) -> str:
    """Return the suffix of a name, if it can be one of a config file: the name is a user's, the path is ours."""
    match = re.search(r"\.[A-Za-z0-9]{1,12}$", name)
    return match.group() if match else ""


def shape(file: FileIn) -> Reply:
    """Return the settings that the schedule or timeline of a file determines: its ranks and microbatches."""
    with at_field("file"):
        content = read_file(file)
    schedule = content.schedule if isinstance(content, Timeline) else content
    settings = {"ranks": schedule.ranks, "microbatches": schedule.microbatches}
    return json_reply(ConfigReply(settings=settings, schedules=(), notes=()))


def preset(name: str) -> Reply:
    """Return the settings of a preset."""
    return config_reply(shipped_costs(name))


def config_reply(config: Config) -> Reply:
    """Return the settings of a config for a form, with notes on what the form cannot hold."""
    settings = {name: value for name, value in config.settings.items() if name != "costs_name"}
    schedule = config.schedule
    names = [strategy(schedule).name] if schedule is not None and is_strategy(schedule) else []
    notes = [f"the schedule '{schedule}' is left out: drop its file"] if schedule is not None and not names else []
    homeless = [name for name in settings if not SETTINGS[name].in_form and name != "stages"]
    notes += [f"{name.replace('_', ' ')} have no field on this page and are left out" for name in homeless]
    # Infinities and NaN become text, so that the field that shows them reports the error.
    reply = ConfigReply(settings=settings, schedules=tuple(names), notes=tuple(notes))
    return Reply(as_json(reply, not_a_number="strings"))


# Downloads.


def media() -> frozenset[str]:
    """Return the media types of all downloads."""
    return frozenset(format.media for format in all_formats().values() if format.writers)


def downloads() -> list[FormatEntry]:
    """Return the formats in the order of a menu."""
    return [
        FormatEntry(
            name=format.name,
            title=format.title,
            ending=format.ending,
            written=bool(format.writers),
            read=format.read is not None and format.write_costs is None,
            several=holds_several(format),
        )
        for format in all_formats().values()
    ]


def holds_several(format: Format) -> bool:
    """Return whether a file of this format can hold more than one schedule."""
    return not format.writers.keys().isdisjoint({"record", "pictures"})


def download(request: DownloadIn) -> Reply:
    """Return one or several schedules as a picture, a page, or a file of another tool."""
    answer = simulate_all(request)
    simulated = answer.results
    if not simulated:
        return refused(*answer.faults.values())
    format = all_formats()[request.format]
    try:
        body, warnings = _file(simulated, format, answer.allowed)
    except (FormatError, ShapeError) as error:
        error.field = "format"
        raise
    name = _stem(simulated[0].name) if len(simulated) == 1 else "comparison"
    return Reply(body, media=format.media, filename=f"{file_name(name)}{format.ending}", warnings=warnings)


def _stem(name: str) -> str:
    return next((name[: -len(ending)] for ending in endings() if name.lower().endswith(ending)), name) or name


def _file(simulated: Sequence[Result], format: Format, allowed: Allowed) -> tuple[bytes, tuple[str, ...]]:
    """Return the content of a file, and sentences about it that the user must know."""
    if len(simulated) > 1 and not holds_several(format):
        raise InputError(f"{format.title} holds one schedule, not {len(simulated)}", field="schedules")
    answer = simulated[0] if len(simulated) == 1 else comparison_of_results(simulated, allowed)
    contents: dict[Content, Callable[[Format], Any]] = {**contents_of(answer)}
    contents["pictures"] = lambda form: views(simulated, reasons=form.explains)
    training = partial(training_of, answer, Training())
    body = content_as(format, contents, training=training)
    if format.write_settings is not None:
        settings = format.write_settings(contents["settings"](format), training())
        named = (f"these settings name {name}: download the PyTorch CSV, too" for name in settings.files)
        return body, (*settings.warnings, *named)
    return body, () if format.warnings is None else tuple(format.warnings(contents["schedule"](format)))
