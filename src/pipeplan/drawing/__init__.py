"""Pictures of schedules: one neutral view, one theme, and renderers that draw it and know nothing else.

What needs matplotlib is in :mod:`pipeplan.drawing.static`, :mod:`pipeplan.drawing.front`,
:mod:`pipeplan.drawing.plan` and :mod:`pipeplan.drawing.notebook`, so that importing this package costs nothing.
"""

from pipeplan.drawing.from_timeline import IdleTimes, MemoryLimit, order_of, view_of
from pipeplan.drawing.shares import MEMORY_SHARES, TIME_SHARES, Share
from pipeplan.drawing.sizes import SIZES, SizeName
from pipeplan.drawing.text import text_of
from pipeplan.drawing.theme import DARK, KIND_TITLES, LIGHT, REASON_TITLES, Theme, ThemeName, theme_named
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
