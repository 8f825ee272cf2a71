"""Pictures of schedules: a renderer-independent view, a theme, and renderers that draw views.

Modules that need matplotlib (:mod:`pipeplan.drawing.static`, :mod:`pipeplan.drawing.front` and
:mod:`pipeplan.drawing.plan`) are imported on first use, so that importing this package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.drawing.from_timeline import IdleReasons, order_of, view_of
    from pipeplan.drawing.sizes import SIZES, Look, LookOptions, SizeName, ThemeName
    from pipeplan.drawing.text import text_of
    from pipeplan.drawing.theme import DARK, LIGHT, MEMORY_PARTS, TIME_PARTS, Like, Theme, theme_named
    from pipeplan.drawing.view import IdleGaps, LanePart, Ratios, View, Windows
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
