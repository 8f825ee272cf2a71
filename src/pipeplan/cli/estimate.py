"""``pipeplan estimate``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from pipeplan.api import require_outputs
from pipeplan.api.planning.planned import PLAN_SETTINGS
from pipeplan.api.planning.planned import estimate as estimate_all
from pipeplan.cli.answers import print_json, written
from pipeplan.cli.options import OUTPUT, Debug, Json, option_of
from pipeplan.cli.plan_progress import ShareLine
from pipeplan.files import require_apart

_WORK = Group("How", sort_key=0)
_NAMES = ("workers", "dask", "store", "calibration")
"""Settings of a plan that estimates have, too."""

_GivenHow: Any = make_dataclass(
    "_GivenHow", [(name, option_of(PLAN_SETTINGS[name], _WORK), None) for name in _NAMES], frozen=True, kw_only=True
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EstimateOptions(_GivenHow):  # type: ignore[misc]
    """The settings of a plan that estimates have, too."""


_HOW = EstimateOptions()


def estimate(
    file: Path,
    /,
    *,
    how: EstimateOptions = _HOW,
    output: Annotated[
        tuple[Path, ...],
        Parameter(
            name=("--output", "-o"),
            help="File for the estimates: .json.",
            group=OUTPUT,
            show_default=False,
            negative=(),
        ),
    ] = (),
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Step time and memory of given configurations, without a search, beside what was measured where the file says it.

    Exits with 1 if none can be estimated.

    Parameters
    ----------
    file
        YAML, TOML or JSON: one configuration, as `pipeplan plan -o best.yaml` writes it, or `rows` of them or of published
        runs.
    """
    require_outputs(output, ("record",), what="a table of estimates")
    require_apart(output, [file])
    with closing(ShareLine(quiet=json, task="estimating")) as line:
        found = estimate_all(file, progress=line.share, **{name: getattr(how, name) for name in _NAMES})
    with written(dict.fromkeys(output, partial(found.save))):
        if json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0 if any(row.refused is None for row in found) else 1
