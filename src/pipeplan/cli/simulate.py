"""``pipeplan simulate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeplan.cli.answers import print_json, tell, write_outputs
from pipeplan.cli.options import Debug, Json, OutputOptions, SettingOptions
from pipeplan.cli.request import request
from pipeplan.workbench.api import simulate_with
from pipeplan.workbench.outputs import picture_name, require_outputs

_SETTINGS = SettingOptions()
_OUTPUT = OutputOptions()


def simulate(
    name: str | None = None,
    /,
    *,
    settings: SettingOptions = _SETTINGS,
    output: OutputOptions = _OUTPUT,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Times, bubble, memory, bound and picture of one schedule.

    Without `--output` it draws `pipeline_NAME.png`. Exits with 1 if a rank is over its memory limit.

    Parameters
    ----------
    name
        A schedule's name (see `pipeplan schedules`), or a CSV or JSON file that holds one. Default: 1f1b.
    """
    asked = request(() if name is None else (name,), settings, output)
    source = (asked.names or ("1f1b",))[0]
    if asked.pictured and not asked.outputs:
        asked = replace(asked, outputs=(Path(picture_name(Path(source).stem)),))
        require_outputs(asked.outputs)
    result = simulate_with(source, asked.settings)
    write_outputs(result, asked.outputs)
    if json:
        print_json(result.to_dict())
        for warning in result.warnings:
            tell(f"warning: {warning}")
    else:
        from pipeplan.cli.tables import result_parts, show

        show(*result_parts(result))
    return 0 if result.fits else 1
