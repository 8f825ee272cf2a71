"""What the command line and a config file ask for together."""

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
    """A question with everything said.

    Attributes
    ----------
    names
        The schedules that are meant.
    settings
        Shape and costs.
    outputs
        Files to write; known to be writable, to be files apart, and none of them an input.
    look
        How pictures look.
    pictures
        Whether there may be pictures, in the terminal too.
    """

    names: tuple[str, ...]
    settings: Settings
    outputs: tuple[Path, ...] = ()
    look: Look = field(default_factory=dict)  # type: ignore[assignment]
    pictures: bool = True

    @property
    def name(self) -> str:
        """The schedule that is meant by a command that takes one."""
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
    """Read the config file, lay the options over it, and look at all inputs and outputs before any work is done.

    Parameters
    ----------
    names
        Schedules by name or file.
    line, output
        What the command line says; without ``output`` the command has no outputs whose ending chooses what they hold.
    draws
        Whether a picture is drawn where neither command line nor config file names an output.
    reads, writes
        Files that the command reads beside schedules and config file, and that it writes beside ``output``.

    Raises
    ------
    InputError
        For a config file that is not right; an output that cannot be written, is an input or is another output.
    """
    config = Config() if line.config is None else api.load_config(line.config)
    names = names or (() if config.schedule is None else (config.schedule,))
    asked = Request(names, merged(config.settings, line.values))
    if output is not None:
        pictures = not (output.no_visualization or config.no_visualization)
        outputs = _outputs(output, config, asked.name if draws else None, pictures=pictures)
        asked = replace(asked, outputs=outputs, look=output.look, pictures=pictures)
    writes = list(writes)
    for path in writes:
        require_writable(path)
    files = [path for path in map(api.file_of, names) if path is not None]
    named = [path for output in asked.outputs for path in api.named_beside(output)]
    require_apart([*asked.outputs, *named, *writes], [*reads, *files, *line.files])
    return asked


def _outputs(options: OutputOptions, config: Config, drawn: str | None, *, pictures: bool) -> tuple[Path, ...]:
    """The files to write; a picture of ``drawn`` where no file is named.

    Without pictures there are none but those that the command line itself names.
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
