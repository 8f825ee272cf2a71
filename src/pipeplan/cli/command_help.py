"""Help texts: ``--help`` and ``--help-all`` of a command, ``pipeplan help``, and completion in the shell."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any, Literal

from cyclopts import App

from pipeplan.cli.answers import tell
from pipeplan.errors import InputError, UnknownNameError

Extent = Literal["usual", "all", "costs"]
"""Options that a help text shows: the usual ones, all, or only those of shape and costs."""

_HELP = "Show help for a command or a topic: 'pipeplan help compare', 'pipeplan help costs'."
_COMPLETION = "Install completion of commands and options in bash, zsh, fish or PowerShell."
_COSTS = "Every command that builds or times a schedule takes these options; -c FILE reads them from a file."


class HelpPanels:
    """Prints the panels of a help text, for cyclopts; panels of rarely needed settings become one line that names them.

    Parameters
    ----------
    extent
        Options to show.
    """

    def __init__(self, extent: Extent) -> None:
        self._extent = extent
        self._folded = False

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print a panel of arguments, options or commands."""
        from cyclopts.help import DefaultFormatter  # brings rich, which only help texts need

        from pipeplan.costs import FOLDED_GROUPS, GROUPS, SETTING_GROUPS

        folded = panel.title in {GROUPS[group] for group in FOLDED_GROUPS}
        if self._extent == "costs" and panel.title not in {GROUPS[group] for group in SETTING_GROUPS}:
            return
        if self._extent == "usual" and folded:
            if not self._folded:
                console.print("More options of shape and costs: --help-all, or 'pipeplan help costs'", style="dim")
            self._folded = True
            return
        DefaultFormatter()(console, options, panel)

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print how the command is called."""
        from cyclopts.help import DefaultFormatter

        if self._extent != "costs":
            DefaultFormatter().render_usage(console, options, usage)

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print the description of the command."""
        from cyclopts.help import DefaultFormatter

        DefaultFormatter().render_description(console, options, _COSTS if self._extent == "costs" else description)


def describe(app: App, command: str) -> None:
    """Give a command the description of its function's docstring, which loads its module, in place of its summary."""
    text = inspect.getdoc(app[command].default_command) or ""
    app[command].help = re.split(r"\n\nParameters\n-+\n", text)[0]


def register_help(app: App, commands: Collection[str]) -> None:
    """Add ``help`` and ``--install-completion`` to a command line with these commands."""

    def show_help(command: str | None = None, /) -> int:
        """Show help for a command or a topic.

        Parameters
        ----------
        command
            A command, or `costs` for the options of shape and costs. Default: all commands.
        """
        if command == "costs":
            app.help_formatter = HelpPanels("costs")
            app.help_print(["simulate"])
            return 0
        if command is not None and command not in commands:
            raise UnknownNameError("command", command, [*commands, "costs"])
        if command is not None:
            describe(app, command)
        app.help_print([] if command is None else [command])
        return 0

    def install_completion(*, shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> int:
        """Write a completion script for the shell and load it in the shell's startup file.

        Parameters
        ----------
        shell
            Shell to complete in. Default: the shell that runs this command.
        """
        from cyclopts.completion.detect import ShellDetectionError

        try:
            script = app.install_completion(shell=shell)
        except ShellDetectionError:
            raise InputError("cannot detect the shell: name it, as in --install-completion --shell zsh") from None
        except OSError as error:
            raise InputError(f"cannot write {error.filename}: {error.strerror}") from None
        tell(f"wrote {script}: a new {shell or 'shell'} completes 'pipeplan' with the Tab key")
        return 0

    app.command(show_help, name="help", help=_HELP, sort_key=len(commands))
    app.command(install_completion, name="--install-completion", help=_COMPLETION)
