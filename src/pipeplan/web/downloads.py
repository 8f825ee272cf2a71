"""Files to take away: pictures and pages of one or several schedules, and one schedule in other tools' formats."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from pipeplan.api import EXPORTS, Comparison, Result, save
from pipeplan.drawing.html import html_page
from pipeplan.errors import FormatError, InputError, PipeplanError, ShapeError
from pipeplan.web.answers import JSON, Answer, refused
from pipeplan.web.drawing import views
from pipeplan.web.faults import fault
from pipeplan.web.requests import DownloadIn
from pipeplan.web.sources import results

_ENDINGS = {
    "torch-csv": "csv",
    "torch-csv-comms": "comms.csv",
    "zb-nodes": "zb.txt",
    "trace": "trace.json",
    "timeline-csv": "timeline.csv",
    "costs": "costs.json",
    "torchtitan": "toml",
    "megatron": "megatron.txt",
}
_MEDIA = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "html": "text/html; charset=utf-8",
    "json": JSON,
    "trace": JSON,
    "costs": JSON,
}
_TEXT = "text/plain; charset=utf-8"
MEDIA = frozenset({_TEXT, *_MEDIA.values()})
"""The types that a download can have."""


def download(question: DownloadIn) -> Answer:
    """A file with what was asked for."""
    had, wrong = results(question)
    if not had:
        return refused(*wrong.values())
    name = had[0].name if len(had) == 1 else "comparison"
    try:
        body = _exported(had, question.format) if question.format in _ENDINGS else _shown(had, question.format)
    except (FormatError, ShapeError) as error:
        return refused(fault(error, "format"))
    except PipeplanError as error:
        return refused(fault(error))
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    ending = _ENDINGS.get(question.format, question.format)
    return Answer(body, media=_MEDIA.get(question.format, _TEXT), filename=f"{safe}.{ending}")


def _exported(had: list[Result], form: str) -> bytes:
    """One schedule in another tool's format; see ``EXPORTS``."""
    if len(had) > 1:
        raise InputError(f"schedules: {form} holds one, not {len(had)}", field="schedules")
    return EXPORTS[form](had[0]).encode()


def _shown(had: list[Result], form: str) -> bytes:
    """A page, a picture or the figures of all."""
    if form == "html":
        return html_page(views(had)).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file.{form}"
        save(had[0] if len(had) == 1 else Comparison(tuple(had)), path)
        return path.read_bytes()
