"""Files to take away: pictures and pages of one or several schedules, and one schedule in other tools' formats."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.api import Result, all_formats, comparison_of_results, content_as, contents_of
from pipeplan.errors import FormatError, InputError, PipeplanError, ShapeError
from pipeplan.files import file_name
from pipeplan.formats import Format, endings
from pipeplan.web.asked_schedules import results
from pipeplan.web.faults import fault
from pipeplan.web.records import FormatEntry
from pipeplan.web.replies import Reply, refused
from pipeplan.web.requests import DownloadIn
from pipeplan.web.timeline_views import views


def media() -> frozenset[str]:
    """The media types that a download can have."""
    return frozenset(each.media for each in all_formats().values() if each.writers)


def downloads() -> list[FormatEntry]:
    """The formats in the order of a menu."""
    return [
        FormatEntry(
            name=each.name,
            title=each.title,
            ending=each.ending,
            written=bool(each.writers),
            read=each.read is not None and each.write_costs is None,
            several=holds_several(each),
        )
        for each in all_formats().values()
    ]


def holds_several(chosen: Format) -> bool:
    """Whether a file of this format can be of more than one schedule."""
    return not chosen.writers.keys().isdisjoint({"record", "pictures"})


def download(question: DownloadIn) -> Reply:
    """A file with what was asked for."""
    had, wrong = results(question)
    if not had:
        return refused(*wrong.values())
    chosen = all_formats()[question.format]
    try:
        body = _body(had, chosen)
    except (FormatError, ShapeError) as error:
        return refused(fault(error, "format"))
    except PipeplanError as error:
        return refused(fault(error))
    name = _stem(had[0].name) if len(had) == 1 else "comparison"
    return Reply(body, media=chosen.media, filename=f"{file_name(name)}{chosen.ending}")


def _stem(name: str) -> str:
    """The name of a schedule without the ending of the file that it was read from."""
    return next((name[: -len(ending)] for ending in endings() if name.lower().endswith(ending)), name) or name


def _body(had: Sequence[Result], chosen: Format) -> bytes:
    if len(had) > 1 and not holds_several(chosen):
        raise InputError(f"{chosen.title} holds one schedule, not {len(had)}", field="schedules")
    answer = had[0] if len(had) == 1 else comparison_of_results(had)
    contents = {**contents_of(answer), "pictures": lambda form: views(had, reasons=form.explains)}
    return content_as(chosen, contents)
