"""The schedule, its parts, and the rule of what waits for what."""

from pipeplan.model import tolerances
from pipeplan.model.arrays import Bools, Floats, Ints
from pipeplan.model.columns import Columns, alternate, concatenate, from_ops, ops, overlap
from pipeplan.model.dependencies import MISSING, NONE, Dependencies, crosses_ranks, dependencies
from pipeplan.model.notation import format_cells, format_schedule, parse_cell, parse_schedule, schedule_from_cells
from pipeplan.model.op import NO_GROUP, NO_MICROBATCH, Kind, Op
from pipeplan.model.placement import Placement
from pipeplan.model.progress import Progress, progress, rendezvous
from pipeplan.model.schedule import Schedule
from pipeplan.model.timeline import Bubble, Timeline

__all__ = [
    "MISSING",
    "NONE",
    "NO_GROUP",
    "NO_MICROBATCH",
    "Bools",
    "Bubble",
    "Columns",
    "Dependencies",
    "Floats",
    "Ints",
    "Kind",
    "Op",
    "Placement",
    "Progress",
    "Schedule",
    "Timeline",
    "alternate",
    "concatenate",
    "crosses_ranks",
    "dependencies",
    "format_cells",
    "format_schedule",
    "from_ops",
    "ops",
    "overlap",
    "parse_cell",
    "parse_schedule",
    "progress",
    "rendezvous",
    "schedule_from_cells",
    "tolerances",
]
