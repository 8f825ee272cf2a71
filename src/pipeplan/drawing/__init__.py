"""Pictures of schedules: one neutral view, one theme, and renderers that draw it and know nothing else.

What needs matplotlib is in :mod:`pipeplan.drawing.static`, :mod:`pipeplan.drawing.front`,
:mod:`pipeplan.drawing.plan` and :mod:`pipeplan.drawing.notebook`, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.drawing.from_timeline import IdleTimes, MemoryLimit, order_of, view_of
    from pipeplan.drawing.look_names import SizeName, ThemeName
    from pipeplan.drawing.shares import MEMORY_SHARES, TIME_SHARES, Share
    from pipeplan.drawing.sizes import SIZES
    from pipeplan.drawing.text import text_of
    from pipeplan.drawing.theme import DARK, KIND_TITLES, LIGHT, REASON_TITLES, Theme, theme_named
    from pipeplan.drawing.view import Gaps, Part, Ratios, View, Windows

__all__ = [
    "DARK",
    "KIND_TITLES",
    "LIGHT",
    "MEMORY_SHARES",
    "REASON_TITLES",
    "SIZES",
    "TIME_SHARES",
    "Gaps",
    "IdleTimes",
    "MemoryLimit",
    "Part",
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
            "from_timeline": {"IdleTimes", "MemoryLimit", "order_of", "view_of"},
            "shares": {"MEMORY_SHARES", "TIME_SHARES", "Share"},
            "look_names": {"SizeName", "ThemeName"},
            "sizes": {"SIZES"},
            "text": {"text_of"},
            "theme": {"DARK", "KIND_TITLES", "LIGHT", "REASON_TITLES", "Theme", "theme_named"},
            "view": {"Gaps", "Part", "Ratios", "View", "Windows"},
        },
    )
