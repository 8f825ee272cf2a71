"""What the command line and a config file ask for together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeplan.cli.options import OutputOptions, SettingOptions
from pipeplan.costs import Settings
from pipeplan.costs.config import Config, load_config, merged
from pipeplan.files import require_no_input
from pipeplan.workbench.outputs import DRAWN, require_outputs
from pipeplan.workbench.planning import file_of


@dataclass(frozen=True, slots=True)
class Request:
    """A question with everything said.

    Attributes
    ----------
    names
        The schedules that are meant.
    settings
        Shape and costs.
    outputs
        Files to write; known to have a folder, and none of them an input.
    pictured
        Whether a picture is wanted at all.
    """

    names: tuple[str, ...]
    settings: Settings
    outputs: tuple[Path, ...]
    pictured: bool


def request(names: tuple[str, ...], options: SettingOptions, output: OutputOptions | None = None) -> Request:
    """Read the config file, lay the options over it, and look at the outputs before any work is done.

    Raises
    ------
    InputError
        For a config file that is not right, an output that cannot be written or is an input.
    """
    config = Config() if options.config is None else load_config(options.config)
    names = names or (() if config.schedule is None else (config.schedule,))
    output = output or OutputOptions()
    outputs = output.output or tuple(map(Path, config.output))
    pictured = not (output.no_visualization or config.no_visualization)
    require_outputs(outputs)
    if not pictured:
        outputs = tuple(path for path in outputs if path.suffix.lower() not in DRAWN)
    inputs = [path for path in map(file_of, names) if path is not None]
    require_no_input(outputs, [*inputs, *([options.config] if options.config else [])])
    return Request(names, merged(config.settings, options.given()), outputs, pictured)
