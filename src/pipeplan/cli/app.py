"""The command line as a whole: which commands there are, and how an error reaches the user."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import App, Parameter, Token

from pipeplan import __version__
from pipeplan.cli.answers import sentence, tell
from pipeplan.cli.command_help import register_help
from pipeplan.errors import InputError, PipeplanError

_HELP = """The workbench for pipeline-parallel training schedules.

- `pipeplan compare -p 4 -m 8` lists every schedule that fits, the fastest first
- `pipeplan simulate zbv -p 4 -m 8` draws one of them
- `pipeplan explain 1f1b -p 4 -m 8` says why its ranks idle, and what would help
- `pipeplan plan --model config.json --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192` finds what to train with

Exit codes: 0 done; 1 the answer is no; 2 the input is wrong.
"""

_COMMANDS = {
    "schedules": ("schedules", "List the schedules, or describe one.", "zbv"),
    "simulate": (
        "simulate",
        "Times, bubble, memory, bound and picture of one schedule.",
        "zbv -p 4 -m 8 --p2p-time 0.1",
    ),
    "compare": (
        "compare",
        "Several schedules, or all that fit the shape, sorted by makespan.",
        "-p 4 -m 8 -o all.html",
    ),
    "explain": ("explain", "Why each rank idles, and what would help.", "1f1b -p 4 -m 8"),
    "search": (
        "search",
        "A better schedule under a memory limit, and how far from optimal it can be.",
        "-p 4 -m 8 --memory-limit 3act --seconds 10 -o best.csv",
    ),
    "pareto": ("search", "The best schedule under each of several memory limits.", "-p 4 -m 8 --points 6 -o front.png"),
    "steady-state": (
        "search",
        "The cost of each further microbatch, in the long run.",
        "-p 4 --placement v --memory-limit 2.5act",
    ),
    "plan": (
        "plan",
        "The configuration to train with: from a model, a cluster and a batch to degrees, schedule and flags.",
        "--model llama3-70b --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192",
    ),
    "estimate": ("estimate", "Step time and memory of given configurations, without a search.", "best.yaml"),
    "catalogue": ("schedules", "List the models, GPUs and machines that have a name.", "gpus"),
    "check": ("check", "Is this schedule right, and would it run?", "schedule.csv --for megatron"),
    "export": ("export", "Write a schedule in another tool's format.", "zbv -p 4 -m 8 --to torch-csv -o zbv.csv"),
    "profile": (
        "run",
        "Measure what a model's stages cost, as a config file.",
        "1f1b -p 4 --model gpt-small -o costs.yaml",
    ),
    "calibrate": (
        "run",
        "Measure what a GPU takes over what a plan expects of it.",
        "llama3-8b --gpu h100-sxm -o calibration.yaml",
    ),
    "run": (
        "run",
        "Train a model with a schedule, measure it, and compare it with the prediction.",
        "zb-h1 -p 2 -m 4 --verify",
    ),
    "diff": ("diff", "Planned against measured, op by op.", "1f1b run.json -c costs.yaml"),
    "convert": (
        "convert",
        "Turn a file with a schedule, a timeline or costs into another format.",
        "schedule.csv schedule.svg",
    ),
    "serve": ("serve", "The web app: sliders, comparison and timeline in a browser.", "--open"),
}
"""The module of each command, what it does, and an example of what stands behind it."""

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
    app = command_line()
    try:
        given = _named(_spelled(given))
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
