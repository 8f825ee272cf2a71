"""Pictures of schedules: a renderer-independent view, a theme, and renderers that draw views.

Modules that need matplotlib (:mod:`pipeplan.drawing.static`, :mod:`pipeplan.drawing.front` and
:mod:`pipeplan.drawing.plan`) are imported on first use, so that importing this package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.drawing.from_timeline import (
        IdleReasons as IdleReasons,
        MemoryLimit as MemoryLimit,
        order_of as order_of,
        view_of as view_of,
    )
    from pipeplan.drawing.sizes import (
        SIZES as SIZES,
        Look as Look,
        LookOptions as LookOptions,
        SizeName as SizeName,
        ThemeName as ThemeName,
    )
    from pipeplan.drawing.text import text_of as text_of
    from pipeplan.drawing.theme import (
        DARK as DARK,
        LIGHT as LIGHT,
        MEMORY_PARTS as MEMORY_PARTS,
        TIME_PARTS as TIME_PARTS,
        Like as Like,
        Theme as Theme,
        theme_named as theme_named,
    )
    from pipeplan.drawing.view import (
        IdleGaps as IdleGaps,
        LanePart as LanePart,
        Ratios as Ratios,
        View as View,
        Windows as Windows,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
