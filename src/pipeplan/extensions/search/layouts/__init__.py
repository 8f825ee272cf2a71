"""Layout search: the layers of each stage, and its recomputation and offload."""

from pipeplan.extensions.search.layouts.best import best_layout, layout_peaks
from pipeplan.extensions.search.layouts.problem import Clock, WorkClock
from pipeplan.extensions.search.layouts.stages import BestLayout, LaidLayer, LayerOption, StageOption

__all__ = ["BestLayout", "Clock", "LaidLayer", "LayerOption", "StageOption", "WorkClock", "best_layout", "layout_peaks"]
