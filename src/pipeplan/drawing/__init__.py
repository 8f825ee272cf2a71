"""Pictures of schedules: a renderer-independent view, a theme, and renderers that draw views.

Modules that need matplotlib (:mod:`pipeplan.drawing.static`, :mod:`pipeplan.drawing.front` and
:mod:`pipeplan.drawing.plan`) are imported on first use, so that importing this package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.drawing.from_timeline import IdleReasons, MemoryLimit, order_of, view_of
    from pipeplan.drawing.sizes import SIZES, Look, LookOptions, SizeName, ThemeName
    from pipeplan.drawing.text import text_of
    from pipeplan.drawing.theme import (
        DARK,
        KIND_TITLES,
        LIGHT,
        MEMORY_SHARES,
        REASON_TITLES,
        TIME_SHARES,
        Share,
        Theme,
        theme_named,
    )
    from pipeplan.drawing.view import IdleGaps, LanePart, Ratios, View, Windows

__all__ = [
    "DARK",
    "KIND_TITLES",
    "LIGHT",
    "MEMORY_SHARES",
    "REASON_TITLES",
    "SIZES",
    "TIME_SHARES",
    "IdleGaps",
    "IdleReasons",
    "LanePart",
    "Look",
    "LookOptions",
    "MemoryLimit",
    "Ratios",
    "Share",
    "SizeName",
    "Theme",
    "ThemeName",
    "View",
    "Windows",
    "order_of",
    "text_of",
    "theme_named",
    "view_of",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "from_timeline": {"IdleReasons", "MemoryLimit", "order_of", "view_of"},
            "sizes": {"SIZES", "Look", "LookOptions", "SizeName", "ThemeName"},
            "text": {"text_of"},
            "theme": {
                "DARK",
                "KIND_TITLES",
                "LIGHT",
                "MEMORY_SHARES",
                "REASON_TITLES",
                "TIME_SHARES",
                "Share",
                "Theme",
                "theme_named",
            },
            "view": {"IdleGaps", "LanePart", "Ratios", "View", "Windows"},
        },
    )
