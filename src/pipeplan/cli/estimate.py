"""``pipeplan estimate``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from pipeplan.api import require_outputs
from pipeplan.api.planning.planned import EstimateOptions, estimated
from pipeplan.cli.answers import print_json, written
from pipeplan.cli.options import command
from pipeplan.cli.progress import progress_bar
from pipeplan.costs import Options, option
from pipeplan.files import require_apart


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """Where estimates go."""

    output: tuple[Path, ...] = option(
        (), kind="files", title="Output", group="output", flags=("-o",), help="JSON file to write the estimates to."
    )


@command
def estimate(file: Path, /, *, options: EstimateOptions, beside: FileOptions, json: bool = False) -> int:
    """Estimate step time and memory of given configurations.

    Shows measured values next to the estimates if the file has them. Exits with 1 if no configuration can be estimated.

    Parameters
    ----------
    file
        YAML, TOML or JSON file: one configuration, as `pipeplan plan -o best.yaml` writes it, or a list `rows` of
        configurations or published runs.
    """
    output = beside.output
    require_outputs(output, ("record",), what="a table of estimates")
    require_apart(output, [file])
    with progress_bar("estimating", quiet=json or not sys.stderr.isatty()) as bar:
        found = estimated(file, options, progress=lambda share: bar.show(share, "estimating"))
    with written(dict.fromkeys(output, found.save)):
        if json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0 if any(row.refused is None for row in found) else 1
