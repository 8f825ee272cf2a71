"""The command line as a whole: which commands there are, and how an error reaches the user."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import App, Parameter, Token

from pipeplan import __version__
from pipeplan.cli.answers import sentence, tell
from pipeplan.cli.command_help import Extent, HelpPanels, describe, register_help
from pipeplan.errors import InputError, PipeplanError, UnknownNameError

_HELP = """Workbench for pipeline-parallel training schedules.

- `pipeplan compare -p 4 -m 8` compares every schedule for 4 ranks and 8 microbatches
- `pipeplan simulate zbv -p 4 -m 8` draws one of them
- `pipeplan explain 1f1b -p 4 -m 8` explains why its ranks idle, and what would help
- `pipeplan plan --model config.json --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192` chooses the
  configuration to train with

Exit codes: 0 success; 1 a negative answer, such as an invalid schedule; 2 invalid input.
"""

_COMMANDS = {
    "schedules": ("schedules", "List the schedules, or describe one.", "zbv"),
    "simulate": (
        "simulate",
        "Simulate one schedule: times, bubble, memory, lower bound and picture.",
        "zbv -p 4 -m 8 --p2p-time 0.1",
    ),
    "compare": ("compare", "Compare schedules, the fastest first.", "-p 4 -m 8 -o all.html"),
    "explain": ("explain", "Explain why each rank idles, and what would help.", "1f1b -p 4 -m 8"),
    "search": (
        "search",
        "Search for a better schedule under a memory limit.",
        "-p 4 -m 8 --memory-limit 3act --seconds 10 -o best.csv",
    ),
    "pareto": ("search", "Find the Pareto front of time against memory.", "-p 4 -m 8 --points 6 -o front.png"),
    "steady-state": (
        "search",
        "Find the shortest repeating pattern: the time of each further microbatch.",
        "-p 4 --placement v --memory-limit 2.5act",
    ),
    "plan": (
        "plan",
        "Choose the configuration to train with, for a model, a cluster and a batch.",
        "--model llama3-70b --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192",
    ),
    "estimate": ("estimate", "Estimate step time and memory of given configurations.", "best.yaml"),
    "catalogue": ("schedules", "List the built-in models, GPUs and machines.", "gpus"),
    "check": (
        "check",
        "Check that a schedule is valid, and that a trainer can run it.",
        "schedule.csv --for megatron",
    ),
    "export": ("export", "Write a schedule in another tool's format.", "zbv -p 4 -m 8 --to torch-csv -o zbv.csv"),
    "profile": (
        "run",
        "Measure the costs of a model's stages, as a config file.",
        "1f1b -p 4 --model gpt-small -o costs.yaml",
    ),
    "calibrate": (
        "run",
        "Calibrate the planner to a GPU, or to the traces of a run.",
        "llama3-8b --gpu h100-sxm -o calibration.yaml",
    ),
    "run": (
        "run",
        "Train a model with a schedule, and compare the measured step with the prediction.",
        "zb-h1 -p 2 -m 4 --verify",
    ),
    "diff": ("diff", "Compare a planned with a measured timeline, op by op.", "1f1b run.json -c costs.yaml"),
    "convert": (
        "convert",
        "Convert a file with a schedule, a timeline or costs to another format.",
        "schedule.csv schedule.svg",
    ),
    "serve": ("serve", "Serve the web app: forms, comparisons and timelines in a browser.", "--open"),
}
"""Module, summary and example arguments of each command; its function's docstring begins with the summary."""

_HELP_FLAGS = ("--help", "-h", "--help-all")

OTHER_SPELLINGS = {
    ("search", "--pareto"): ("pareto",),
    ("search", "--steady-state"): ("steady-state",),
    ("schedules", "--machines"): ("catalogue", "machines"),
    ("plan", "--models"): ("catalogue", "models"),
    ("plan", "--gpus"): ("catalogue", "gpus"),
    ("plan", "--clusters"): ("catalogue", "gpus"),
    ("profile", "--calibrate"): ("calibrate",),
}
"""Switches of a command that are other commands; what follows the switch stays in its place."""


def command_line(extent: Extent = "usual") -> App:
    """Return all commands with their options, as help, completion and documentation read them.

    Parameters
    ----------
    extent
        Options that help texts show.
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
    for place, (name, (module, text, example)) in enumerate(_COMMANDS.items()):
        app.command(
            f"pipeplan.cli.{module}:{name.replace('-', '_')}",
            name=name,
            help=text,
            help_epilogue=f"Example: `pipeplan {name} {example}`",
            sort_key=place,
        )
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


def _require_command(app: App, given: Sequence[str]) -> None:
    """Raise UnknownNameError for a command that there is not: cyclopts would load every command before it says so."""
    if given and given[0] not in app:
        raise UnknownNameError("command", given[0], [name for name in app if not name.startswith("-")])


def _spelled(given: Sequence[str]) -> list[str]:
    """What was given, with the command that a switch of another command stands for."""
    words = [part for each in given for part in (each.split("=", 1) if each.startswith("--calibrate=") else [each])]
    switches = [each for each in words if (words[0], each) in OTHER_SPELLINGS]
    meant = list(dict.fromkeys(part for each in switches for part in OTHER_SPELLINGS[words[0], each]))
    if len({OTHER_SPELLINGS[words[0], each][0] for each in switches}) > 1:
        raise InputError(f"{' and '.join(switches)} are different questions: choose one of them")
    return [*meant, *(each for each in words[1:] if each not in switches)] if meant else words


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
    given = list(arguments)
    app = command_line("all" if "--help-all" in given else "usual")
    try:
        given = _named(_spelled(given))
        _require_command(app, given)
        if given and given[0] in _COMMANDS and not {*given}.isdisjoint(_HELP_FLAGS):
            describe(app, given[0])
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
