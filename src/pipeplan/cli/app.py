"""The command line as a whole: which commands there are, and how an error reaches the user."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import App, Parameter, Token

from pipeplan import __version__
from pipeplan.cli.answers import sentence, tell
from pipeplan.cli.command_help import register_help
from pipeplan.errors import PipeplanError

_HELP = """The workbench for pipeline-parallel training schedules.

- `pipeplan compare -p 4 -m 8` lists every schedule that fits, the fastest first
- `pipeplan simulate zbv -p 4 -m 8` draws one of them
- `pipeplan explain 1f1b -p 4 -m 8` says why its ranks idle, and what would help
- `pipeplan plan --model config.json --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192` finds what to train with

Exit codes: 0 done; 1 the answer is no; 2 the input is wrong.
"""

_COMMANDS = {
    "schedules": "List the schedules, or describe one.",
    "simulate": "Times, bubble, memory, bound and picture of one schedule.",
    "compare": "Several schedules, or all that fit the shape, sorted by makespan.",
    "explain": "Why each rank idles, and what would help.",
    "search": "A better schedule under a memory limit, and how far from optimal it can be.",
    "plan": "The configuration to train with: from a model, a cluster and a batch to degrees, schedule and flags.",
    "estimate": "Step time and memory of given configurations, without a search.",
    "check": "Is this schedule right, and would it run?",
    "export": "Write a schedule in another tool's format.",
    "profile": "Measure what a model's stages cost, as a config file.",
    "run": "Train a model with a schedule, measure it, and compare it with the prediction.",
    "diff": "Planned against measured, op by op.",
    "convert": "Turn a file with a schedule, a timeline or costs into another format.",
    "serve": "The web app: sliders, comparison and timeline in a browser.",
}


def command_line() -> App:
    """All commands with their options, as help, completion and documentation read them."""
    app = App(
        name="pipeplan",
        help=_HELP,
        version=__version__,
        help_format="markdown",
        default_parameter=Parameter(negative=(), converter=_from_words),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for place, (name, text) in enumerate(_COMMANDS.items()):
        app.command(f"pipeplan.cli.{name}:{name}", name=name, help=text, sort_key=place)
    register_help(app, _COMMANDS)
    return app


def _from_words(held: Any, tokens: Sequence[Token]) -> Any:
    """See :func:`pipeplan.cli.options.from_words`, which comes with the command that is called."""
    from pipeplan.cli.options import from_words

    return from_words(held, tokens)


def _options_of(app: App, given: Sequence[str]) -> frozenset[str] | None:
    """What the command that was given takes; None where none was."""
    command = next((each for each in given if each in _COMMANDS), None)
    if command is None:
        return None
    return frozenset(name for argument in app[command].assemble_argument_collection() for name in argument.names)


def _named(given: Sequence[str]) -> list[str]:
    """What was given, with a name for standard input: ``-`` alone would be an option without its letter."""
    before = ("", *given)
    return [
        "/dev/stdin" if each == "-" and last not in _OUTPUTS else each
        for last, each in zip(before, given, strict=False)
    ]


_OUTPUTS = ("-o", "--output")


def answered(arguments: Sequence[str], before_errors: Callable[[], None] = lambda: None) -> int:
    """Run a command and return its exit code; an error becomes a sentence.

    Parameters
    ----------
    arguments
        What stands behind ``pipeplan`` on the command line.
    before_errors
        Called before an error is told; may raise what it came of.
    """
    given = _named(arguments)
    app = command_line()
    try:
        code = app(given, exit_on_error=False, print_error=False)
    except Exception as error:
        # The last resort: every error becomes a sentence and an exit code.
        before_errors()
        if "--debug" in given:
            tell(traceback.format_exc().rstrip())
        else:
            options = _options_of(app, given) if isinstance(error, PipeplanError) else None
            tell(sentence(error, options))
        return error.exit_code if isinstance(error, PipeplanError) else 2
    return code if isinstance(code, int) else 0
