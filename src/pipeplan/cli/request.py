"""Request of a command line and its config file together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeplan import api
from pipeplan.cli.options import LineSettings, OutputOptions
from pipeplan.costs import Config, Settings, merged
from pipeplan.files import path_of, require_apart, require_writable

if TYPE_CHECKING:
    from pipeplan.drawing import Look


@dataclass(frozen=True, slots=True)
class Request:
    """Validated request of a command.

    Attributes
    ----------
    names
        Schedules, by name or file.
    settings
        Shape and costs.
    outputs
        Files to write: writable, distinct, and none of them an input.
    look
        Theme and size of pictures.
    pictures
        Whether pictures are drawn, in the terminal and in files that the config file names.
    """

    names: tuple[str, ...]
    settings: Settings
    outputs: tuple[Path, ...] = ()
    look: Look = field(default_factory=dict)  # type: ignore[assignment]
    pictures: bool = True

    @property
    def name(self) -> str:
        """The schedule of a command that takes one."""
        return self.names[0] if self.names else "1f1b"


def request(
    names: tuple[str, ...],
    line: LineSettings,
    output: OutputOptions | None = None,
    *,
    draws: bool = False,
    reads: Iterable[Path] = (),
    writes: Iterable[Path] = (),
) -> Request:
    """Read the config file, apply the options, and check all inputs and outputs before any work.

    Parameters
    ----------
    names
        Schedules by name or file.
    line, output
        Options of the command line; ``output`` is None for a command without ``--output``.
    draws
        Draw a picture if neither the command line nor the config file names an output.
    reads, writes
        Further files that the command reads and writes.

    Raises
    ------
    InputError
        For an invalid config file, and an output that cannot be written, is an input or is another output.
    """
    config = Config() if line.config is None else api.load_config(line.config)
    names = names or (() if config.schedule is None else (config.schedule,))
    result = Request(names, merged(config.settings, line.values))
    if output is not None:
        pictures = not (output.no_visualization or config.no_visualization)
        outputs = _outputs(output, config, result.name if draws else None, pictures=pictures)
        result = replace(result, outputs=outputs, look=output.look, pictures=pictures)
    writes = list(writes)
    for path in writes:
        require_writable(path)
    files = [path for path in map(api.file_of, names) if path is not None]
    named = [path for output in result.outputs for path in api.named_beside(output)]
    require_apart([*result.outputs, *named, *writes], [*reads, *files, *line.files])
    return result


def _outputs(options: OutputOptions, config: Config, drawn: str | None, *, pictures: bool) -> tuple[Path, ...]:
    """Return the files to write, or a picture of the schedule ``drawn`` if there are none.

    Without pictures, the pictures that only the config file names are left out.
    """
    outputs = options.output or tuple(path_of(name, "the output", field="output") for name in config.output)
    api.require_outputs(outputs)
    if not pictures and not options.output:
        return tuple(path for path in outputs if not api.is_picture(path))
    if outputs or drawn is None:
        return outputs
    picture = Path(api.picture_name(Path(drawn).stem))
    api.require_outputs([picture])
    return (picture,)
