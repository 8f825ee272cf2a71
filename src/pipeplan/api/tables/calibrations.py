"""A calibration for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from pipeplan.api.planning.calibrations import CalibrationProfile
from pipeplan.api.tables.parts import columns, line


def calibration_parts(profile: CalibrationProfile) -> Iterator[RenderableType]:
    """A row a kind of work: its factor, and what it is made of."""
    found = profile.calibration
    on = f", measured on {found.measured_on}" if found.measured_on else ""
    yield line(f"{found.gpu}{on}", "bold")
    yield Text("")
    table = columns("work", "factor", "measured (ms)", "analytic (ms)", "of", padding=1)
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for each in found.corrections:
        times = (f"{seconds * 1e3:,.4g}" for seconds in (each.measured, each.analytic))
        table.add_row(each.kind.replace("_", " "), f"{each.factor:.3f}", *times, each.source)
    yield table
    yield Text("\n'--calibration' of a plan and of estimates takes this, saved as .yaml or .json")
