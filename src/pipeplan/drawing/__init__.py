"""Pictures of schedules: a renderer-independent view, a theme, and renderers that draw views.

Modules that need matplotlib (:mod:`pipeplan.drawing.static`, :mod:`pipeplan.drawing.front` and
:mod:`pipeplan.drawing.plan`) are imported on first use, so that importing this package is cheap.
"""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "from_timeline": "IdleReasons order_of view_of",
    "sizes": "SIZES Look LookOptions SizeName ThemeName",
    "text": "text_of",
    "theme": "DARK LIGHT MEMORY_PARTS TIME_PARTS Like Theme theme_named",
    "view": "IdleGaps LanePart OpCosts Ratios View Windows",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
