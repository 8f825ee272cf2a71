"""What notebooks show: a picture and a line of figures, for views, timelines and schedules.

Timelines and schedules find this module by name (:mod:`pipeplan.model.schedule`); what makes its own views calls ``html_of``
and ``png_of`` with them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from io import BytesIO

from pipeplan.drawing.from_timeline import order_of, view_of
from pipeplan.drawing.labels import figures_of, times_of
from pipeplan.drawing.sizes import ThemeName
from pipeplan.drawing.static import save_picture
from pipeplan.drawing.view import View
from pipeplan.model import Schedule, Timeline

Shown = View | Timeline | Schedule

_MOST_IN_SVG = 3000
"""Bars beyond which a bitmap is smaller than a drawing."""


def png_of(shown: Shown | Sequence[Shown], *, theme: ThemeName = "light") -> bytes:
    """One picture of one or several views, timelines or schedules (which show their order only), as PNG."""
    return _picture(_views(shown), "png", theme)


def html_of(shown: Shown | Sequence[Shown], *, theme: ThemeName = "light") -> str:
    """Return an HTML fragment with a picture that needs no network, described for screen readers by its figures."""
    views = _views(shown)
    drawn = sum(len(view.bars) for view in views) <= _MOST_IN_SVG
    kind, media = ("svg", "image/svg+xml") if drawn else ("png", "image/png")
    data = b64encode(_picture(views, kind, theme)).decode()
    described = escape("; ".join(_figures(view) for view in views))
    return f'<img style="max-width: 100%" alt="{described}" src="data:{media};base64,{data}">'


def _views(shown: Shown | Sequence[Shown]) -> list[View]:
    several = [shown] if isinstance(shown, View | Timeline | Schedule) else shown
    return [_view(one) for one in several]


def _view(shown: Shown) -> View:
    if isinstance(shown, View):
        return shown
    return order_of(shown) if isinstance(shown, Schedule) else view_of(shown)


def _picture(views: Sequence[View], kind: str, theme: ThemeName) -> bytes:
    file = BytesIO()
    save_picture(views, file, size="page", theme=theme, format=kind)
    return file.getvalue()


def _figures(view: View) -> str:
    """A view in one sentence."""
    title = view.title or "schedule"
    if view.source == "order":
        return f"{title}: the order of {len(view.bars)} ops on {len(view.lanes.label)} ranks"
    return f"{title}: {view.source}, {figures_of(view, times_of([view]))}"
