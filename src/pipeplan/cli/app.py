"""The command line as a whole: its commands, their help and completion, and the messages of errors."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, Literal

from cyclopts import App, Parameter, Token

from pipeplan import __version__
from pipeplan.cli.answers import sentence, tell
from pipeplan.cli.commands import ALIASES, commands, other_options, spellings
from pipeplan.cli.refusals import refused, unknown_command, with_decimal_points, with_hyphens
from pipeplan.foundation.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.extensions import Command
from pipeplan.foundation.files import STANDARD_INPUT

_HELP = """Workbench for pipeline-parallel training schedules.

- `pipeplan compare -p 4 -m 8` compares every schedule for 4 ranks and 8 microbatches
- `pipeplan simulate zbv -p 4 -m 8` draws one of them
- `pipeplan explain 1f1b -p 4 -m 8` explains why its ranks idle, and what would help
- `pipeplan plan --model config.json --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192` chooses the
  configuration to train with

Exit codes: 0 success; 1 a negative answer, such as an invalid schedule; 2 invalid input.
"""

Extent = Literal["usual", "all", "costs"]
"""Options that a help text shows: the usual ones, all, or only those of shape and costs."""

_HELP_OF_HELP = (
    "Show help for a command ('pipeplan help compare'), or for all options of shape and costs ('help costs')."
)
_COMPLETION = "Install completion of commands and options in bash, zsh, fish or PowerShell."
_COSTS = "Every command that builds or times a schedule takes these options; -c FILE reads them from a file."

_HELP_FLAGS = ("--help", "-h", "--help-all")


def command_line(extent: Extent = "usual", first: str | None = None) -> App:
    """Return the commands with their options, as help, completion and documentation read them.

    ``first`` is the first word of the command line, if there is one; see :func:`~pipeplan.cli.commands.commands`.
    """
    app = App(
        name="pipeplan",
        help=_HELP,
        version=__version__,
        help_format="markdown",
        help_flags=_HELP_FLAGS,
        help_formatter=HelpPanels(extent),
        default_parameter=Parameter(negative=(), converter=_from_words),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    known = commands(first)
    for command in known.values():
        app.command(
            command.function,
            name=command.name,
            help=command.summary,
            help_epilogue=f"Example: `pipeplan {command.name} {command.example}`",
            sort_key=command.place,
        )
    register_help(app, known)
    return app


def _from_words(held: Any, tokens: Sequence[Token]) -> Any:
    """Call :func:`pipeplan.cli.options.from_words`, which is loaded with the command."""
    from pipeplan.cli.options import from_words

    return from_words(held, tokens)


def _options_of(app: App, arguments: Sequence[str]) -> frozenset[str] | None:
    first = arguments[0] if arguments else ""
    if first not in commands(first):
        return None
    return frozenset(name for argument in app[first].assemble_argument_collection() for name in argument.names)


def _respelled(arguments: Sequence[str]) -> list[str]:
    """Replace an alias of a command by its name, and a switch that means another command by that command."""
    first = arguments[0] if arguments else ""
    known, options = spellings(first), other_options(first)
    command, others, switches = [*ALIASES.get("".join(arguments[:1]), arguments[:1])], list[str](), list[str]()
    for word in arguments[1:]:
        switch, _, value = word.partition("=") if word.startswith("--calibrate=") else (word, "", "")
        spelling = known.get((arguments[0], switch))
        if spelling is None:
            option, is_set, text = word.partition("=")
            renamed = options.get((arguments[0], option))
            others += [word] if renamed is None else [*renamed, *([text] if is_set else [])]
            continue
        if switches and [*spelling] != command:
            raise InputError(f"{' and '.join([*switches, switch])} exclude each other: choose one of them")
        command = [*spelling]
        switches.append(switch)
        if value:
            others.append(value)
    if switches and command[:1] == ["list"]:
        further = next((word for word in others if word.startswith("-") and word not in _OF_LISTS), None)
        if further is not None:
            raise InputError(
                f"{switches[0]} only lists, without {further}: drop one of them, or write 'pipeplan {' '.join(command)}'"
            )
    return [*command, *others]


_OF_LISTS = ("--json", "--debug", "--no-visualization", *_HELP_FLAGS)
"""Options that a list takes, beside the looks of its picture."""


def _with_standard_input(arguments: Sequence[str]) -> list[str]:
    """Replace ``-`` by the path of standard input: cyclopts would take it for an option without a letter."""
    previous = ("", *arguments)
    return [
        STANDARD_INPUT if word == "-" and before not in _OUTPUTS else word
        for before, word in zip(previous, arguments, strict=False)
    ]


_OUTPUTS = ("-o", "--output")


def answered(arguments: Sequence[str], before_errors: Callable[[], None] = lambda: None) -> int:
    """Run a command and return its exit code; an error becomes a sentence.

    ``before_errors`` is called before an error is reported, and may raise the cause of the error.
    """
    words = list(arguments)
    first = ALIASES.get(words[0], words)[0] if words else None
    app = command_line("all" if "--help-all" in words else "usual", first)
    try:
        words = _with_standard_input(_respelled(with_hyphens(words)))
        if words and words[0] not in app:  # cyclopts would load every command before it says so
            raise unknown_command(words, app)
        if words and words[0] in commands(words[0]) and not {*words}.isdisjoint(_HELP_FLAGS):
            describe(app, words[0])
        code = app(words, exit_on_error=False, print_error=False)
    except Exception as error:
        # Every error, also an unexpected one, becomes a sentence and an exit code.
        before_errors()
        if "--debug" in words:
            tell(traceback.format_exc().rstrip())
        else:
            options = _options_of(app, words) if isinstance(error, PipeplanError) else None
            tell(sentence(with_decimal_points(refused(error), words), options))
        return error.exit_code if isinstance(error, PipeplanError) else 2
    return code if isinstance(code, int) else 0


class HelpPanels:
    """Prints the panels of a help text, for cyclopts; rarely needed options become one line that says how to see them.

    Attributes
    ----------
    rare
        Options, besides those of folded groups, that only ``--help-all`` shows.
    aliases
        Other names of options, which only ``--help-all`` shows.
    """

    def __init__(self, extent: Extent) -> None:
        self._extent = extent
        self._folded = False
        self.rare: frozenset[str] = frozenset()
        self.aliases: frozenset[str] = frozenset()

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print a panel of arguments, options or commands."""
        from cyclopts.help import DefaultFormatter  # brings rich, which only help texts need

        from pipeplan.costs import FOLDED_GROUPS, GROUPS, SETTING_GROUPS

        if self._extent == "costs" and panel.title not in {GROUPS[group] for group in SETTING_GROUPS}:
            return
        if self._extent == "usual":
            if panel.title in {GROUPS[group] for group in FOLDED_GROUPS}:
                self._folded = True
                return
            if panel.title == GROUPS["output"]:
                more = ", or 'pipeplan help costs'" if self._folded else ""
                console.print(f"More options: --help-all{more}", style="dim")
            entries = (entry for entry in panel.entries if self.rare.isdisjoint(entry.names))
            panel = panel.copy(entries=[self._with_own_names(entry) for entry in entries])
        if panel.entries:
            DefaultFormatter()(console, options, panel)

    def _with_own_names(self, entry: Any) -> Any:
        """Return an entry of a panel without the aliases of its option."""
        return entry.copy(
            positive_names=tuple(name for name in entry.positive_names if name not in self.aliases),
            positive_shorts=tuple(name for name in entry.positive_shorts if name not in self.aliases),
        )

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
    """Give a command, whose module is loaded, the description of its function, and fold its rarely needed options."""
    function = app[command].default_command
    text = inspect.getdoc(function) or ""
    app[command].help = re.split(r"\n\nParameters\n-+\n", text)[0]
    settings = getattr(function, "settings", {}).values()
    rare = {name for setting in settings if not setting.usual for name in setting.options}
    assert isinstance(app.help_formatter, HelpPanels)
    app.help_formatter.rare = frozenset(rare | {"--debug"})
    app.help_formatter.aliases = frozenset(name for setting in settings for name in setting.other_options)


def register_help(app: App, commands: Mapping[str, Command]) -> None:
    """Add ``help`` and ``--install-completion`` to a command line with these commands."""

    def show_help(command: str | None = None, /) -> int:
        """Show help for a command, or for the options of shape and costs.

        Parameters
        ----------
        command
            A command, or `costs` for the options of shape and costs. Default: all commands.
        """
        if command == "costs":
            from pipeplan.costs import SETTINGS

            app.help_formatter = HelpPanels("costs")
            app.help_print(["simulate"])
            names = [name for name, setting in SETTINGS.items() if setting.shell == "none"]
            print(
                fill(f"Set in config files (-c FILE) and in Python: {', '.join(names)}.", get_terminal_size().columns)
            )
            return 0
        command = ALIASES.get(command, (command,))[0] if command is not None else None
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

    app.command(
        show_help, name="help", help=_HELP_OF_HELP, sort_key=1 + max(command.place for command in commands.values())
    )
    app.command(install_completion, name="--install-completion", help=_COMPLETION)
