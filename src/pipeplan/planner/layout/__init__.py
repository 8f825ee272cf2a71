"""Layout search: the layers of each stage, and its recomputation and offload."""

from pipeplan.planner.layout.best import best_layout, layout_peaks
from pipeplan.planner.layout.problem import Clock, WorkClock
from pipeplan.planner.layout.stages import BestLayout, LaidLayer, LayerOption, StageOption

__all__ = ["BestLayout", "Clock", "LaidLayer", "LayerOption", "StageOption", "WorkClock", "best_layout", "layout_peaks"]
