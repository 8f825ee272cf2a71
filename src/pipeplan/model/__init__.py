"""The schedule, its parts, and the rule of what waits for what."""

from pipeplan.model import tolerances
from pipeplan.model.arrays import Bools, Floats, Ints
from pipeplan.model.columns import Columns, alternate, concatenate, from_ops, ops, overlap
from pipeplan.model.dependency import (
    MISSING,
    NONE,
    Dependencies,
    crosses_ranks,
    dependencies,
    received_when_needed,
    source_of,
)
from pipeplan.model.memory import (
    NOT_GIVEN,
    MemoryRule,
    MemoryUse,
    held_throughout,
    in_activations,
    kept_and_moved,
    memory_changes,
    memory_levels,
    memory_moments,
)
from pipeplan.model.names import cell_width, counted, one_line, shortened
from pipeplan.model.notation import (
    format_cells,
    format_schedule,
    infer_placement,
    parse_cell,
    parse_schedule,
    schedule_from_cells,
)
from pipeplan.model.op import (
    BACKWARD_KINDS,
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    NO_GROUP,
    NO_MICROBATCH,
    PASS_KINDS,
    RECEIVE_KINDS,
    SEND_KINDS,
    STAGE_WIDE_KINDS,
    WEIGHT_KINDS,
    Kind,
    Op,
    among,
)
from pipeplan.model.placement import Placement
from pipeplan.model.quantities import (
    LARGEST,
    SMALLEST,
    require_range,
)
from pipeplan.model.running import Progress, farthest, progress, rendezvous
from pipeplan.model.schedule import Schedule
from pipeplan.model.size import (
    MOST_FORWARDS,
    in_digits,
    require_size,
)
from pipeplan.model.time_units import TIME_UNITS, units_in
from pipeplan.model.timeline import Bubble, Timeline

__all__ = [
    "BACKWARD_KINDS",
    "COMMUNICATION_KINDS",
    "COMPUTE_KINDS",
    "HOST_KINDS",
    "LARGEST",
    "MISSING",
    "MOST_FORWARDS",
    "NONE",
    "NOT_GIVEN",
    "NO_GROUP",
    "NO_MICROBATCH",
    "PASS_KINDS",
    "RECEIVE_KINDS",
    "SEND_KINDS",
    "SMALLEST",
    "STAGE_WIDE_KINDS",
    "TIME_UNITS",
    "WEIGHT_KINDS",
    "Bools",
    "Bubble",
    "Columns",
    "Dependencies",
    "Floats",
    "Ints",
    "Kind",
    "MemoryRule",
    "MemoryUse",
    "Op",
    "Placement",
    "Progress",
    "Schedule",
    "Timeline",
    "alternate",
    "among",
    "cell_width",
    "concatenate",
    "counted",
    "crosses_ranks",
    "dependencies",
    "farthest",
    "format_cells",
    "format_schedule",
    "from_ops",
    "held_throughout",
    "in_activations",
    "in_digits",
    "infer_placement",
    "kept_and_moved",
    "memory_changes",
    "memory_levels",
    "memory_moments",
    "one_line",
    "ops",
    "overlap",
    "parse_cell",
    "parse_schedule",
    "progress",
    "received_when_needed",
    "rendezvous",
    "require_range",
    "require_size",
    "schedule_from_cells",
    "shortened",
    "source_of",
    "tolerances",
    "units_in",
]
