"""File formats of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from io import BytesIO
from typing import Unpack

from pipeplan.drawing import Look, View, text_of
from pipeplan.drawing.html import ReportPage, html_page, report_page
from pipeplan.formats import Format

_COLUMNS = 120
"""Width of a picture in characters."""


def _saved(kind: str, module: str, save: str) -> Callable[..., bytes]:
    """Return a function that draws with a function of a module of :mod:`pipeplan.drawing`, which brings matplotlib."""

    def draw(content: object, **look: Unpack[Look]) -> bytes:
        file = BytesIO()
        getattr(import_module(f"pipeplan.drawing.{module}"), save)(content, file, format=kind, **look)
        return file.getvalue()

    return draw


def _page(views: Sequence[View], **look: Unpack[Look]) -> str:
    """Return a page of the window's size, which follows the reader's system unless a theme is set."""
    return html_page(views, theme=look.get("theme"))


def _report(report: ReportPage, **look: Unpack[Look]) -> str:
    return report_page(report, theme=look.get("theme"))


def _letters(views: Sequence[View], **_: Unpack[Look]) -> str:
    return "".join(f"{text_of(view, width=_COLUMNS)}\n\n" for view in views).removesuffix("\n")


def _static(kind: str, help: str, media: str) -> Format:
    return Format(
        name=kind,
        title=f"Picture, {kind.upper()}",
        help=help,
        ending=f".{kind}",
        media=media,
        draw=_saved(kind, "static", "save_picture"),
        draw_front=_saved(kind, "front", "save_front"),
        draw_plan=_saved(kind, "plan", "save_plan"),
    )


PICTURES = (
    _static("png", "Bitmap image.", "image/png"),
    _static("svg", "Vector image for web pages.", "image/svg+xml"),
    _static("pdf", "Vector image for papers.", "application/pdf"),
    Format(
        name="html",
        title="Interactive page, HTML",
        help="Self-contained page with zoom and search; needs no network.",
        ending=".html",
        media="text/html; charset=utf-8",
        draw=_page,
        draw_report=_report,
        explains=True,
    ),
    Format(
        name="text",
        title="Plain-text diagram",
        help="Plain-text diagram, for a terminal or a message.",
        ending=".txt",
        media="text/plain; charset=utf-8",
        draw=_letters,
    ),
)
