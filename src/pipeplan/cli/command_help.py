"""What helps with the command line itself: ``pipeplan help``, and completion in the shell."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from cyclopts import App

from pipeplan.cli.answers import tell
from pipeplan.errors import InputError, UnknownNameError

HELP = "What the commands do, or how one of them is used: 'pipeplan help compare'."
COMPLETION = "Let the shell complete commands and options: bash, zsh, fish or PowerShell."


def register_help(app: App, commands: Collection[str]) -> None:
    """Add ``help`` and ``--install-completion`` to the command line, whose other commands these are."""

    def show_help(command: str | None = None, /) -> int:
        """Show what the commands do, or how one of them is used.

        Parameters
        ----------
        command
            One of them. Default: all.
        """
        if command is not None and command not in commands:
            raise UnknownNameError("command", command, commands)
        app.help_print([] if command is None else [command])
        return 0

    def install_completion(*, shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> int:
        """Write the script that completes commands and options, and have the shell's start-up file load it.

        Parameters
        ----------
        shell
            The shell that it is for. Default: the one that runs this.
        """
        from cyclopts.completion.detect import ShellDetectionError

        try:
            script = app.install_completion(shell=shell)
        except ShellDetectionError:
            raise InputError(
                "which shell this is cannot be seen: name it, as in --install-completion --shell zsh"
            ) from None
        except OSError as error:
            raise InputError(f"cannot write {error.filename}: {error.strerror}") from None
        tell(f"wrote {script}: a new {shell or 'shell'} completes 'pipeplan' with the Tab key")
        return 0

    app.command(show_help, name="help", help=HELP, sort_key=len(commands))
    app.command(install_completion, name="--install-completion", help=COMPLETION)
