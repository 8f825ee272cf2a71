"""Commands of the shell: those of the core, and those that extensions register."""

from __future__ import annotations

from pipeplan.foundation.extensions import Command, Extension, extensions

CORE = (
    Command(
        name="list",
        function="pipeplan.cli.lists:list",
        summary="List the built-in schedules, costs, models, GPUs, machines or review rules, or describe one schedule.",
        example="schedules zbv",
        place=10,
    ),
    Command(
        name="simulate",
        function="pipeplan.cli.simulate:simulate",
        summary="Simulate one schedule: times, bubble, memory, lower bound and picture.",
        example="zbv -p 4 -m 8 --p2p-time 0.1",
        place=20,
    ),
    Command(
        name="compare",
        function="pipeplan.cli.compare:compare",
        summary="Compare schedules, the fastest first.",
        example="-p 4 -m 8 -o all.html",
        place=30,
    ),
    Command(
        name="explain",
        function="pipeplan.cli.simulate:explain",
        summary="Explain why each rank idles, and what would help.",
        example="1f1b -p 4 -m 8",
        place=40,
    ),
    Command(
        name="check",
        function="pipeplan.cli.schedule_files:check",
        summary="Check that a schedule is valid, and that a trainer can run it.",
        example="schedule.csv --for megatron",
        place=100,
    ),
    Command(
        name="export",
        function="pipeplan.cli.schedule_files:export",
        summary="Write a schedule, a timeline, costs or a layout in another tool's format.",
        example="zbv -p 4 -m 8 --to torch-csv -o zbv.csv",
        place=110,
    ),
)
"""Commands of the core."""

ALIASES = {"schedules": ("list", "schedules"), "catalogue": ("list",), "convert": ("export",)}
"""Other names of commands, which help does not list."""


def commands(first: str | None = None) -> dict[str, Command]:
    """Return every command by name, in the order of the help.

    Extensions are not looked for if the first word of the command line is a command of the core, or asks for the version.
    """
    own = {command.name: command for command in CORE}
    if first in own or first == "--version":
        return own
    registered = [command for extension in extensions() for command in extension.commands]
    return {command.name: command for command in sorted((*CORE, *registered), key=lambda command: command.place)}


def spellings(first: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the command that a switch of another command means, by both: ``("search", "--pareto")`` is ``pareto``.

    Extensions are not looked for if the first word of the command line is a command of the core.
    """
    own: dict[tuple[str, str], tuple[str, ...]] = {("schedules", "--machines"): ("list", "machines")}
    return own | {switch: words for each in _extensions_of(first) for switch, words in each.spellings.items()}


def other_options(first: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return other spellings of a command's options, by both, which help does not list."""
    return {option: words for each in _extensions_of(first) for option, words in each.other_options.items()}


def _extensions_of(first: str) -> tuple[Extension, ...]:
    return () if first in ALIASES or first in {command.name for command in CORE} else extensions()
