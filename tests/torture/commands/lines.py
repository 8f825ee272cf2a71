"""Command lines: an honest one of each command, with a few things about it changed."""

from __future__ import annotations

import random

from tests.torture.commands.options import Option, commands, options_of
from tests.torture.commands.plainly_wrong import with_a_wrong_value, without
from tests.torture.commands.values import hostile

_SHAPED = "-p 2 -m 3"
_SEARCH = "search -p 2 -m 2 --workers 1"
_PLANNED = "plan --model model.yaml --cluster h100-sxm:2x1 --global-batch 4 --sequence 64 --workers 1 --seconds 0.3"

HONEST: dict[str, tuple[str, ...]] = {
    "schedules": ("schedules", "schedules zbv", "schedules --machines"),
    "simulate": (
        f"simulate zbv {_SHAPED}",
        f"simulate {_SHAPED}",
        "simulate order.json",
        "simulate --config config.yaml",
        "simulate -",
    ),
    "compare": (f"compare 1f1b gpipe {_SHAPED}", f"compare {_SHAPED}", "compare order.json rows.rows.txt"),
    "explain": (f"explain 1f1b {_SHAPED}", "explain json.json", "explain traces"),
    "search": (
        *(f"{_SEARCH} --seconds 0.2", f"{_SEARCH} --evaluations 30", f"{_SEARCH} --pareto --points 2 --seconds 0.1"),
        f"{_SEARCH} --steady-state --seconds 0.2",
    ),
    "plan": (_PLANNED, f"{_PLANNED} --flags megatron", "plan --models", "plan --gpus"),
    "estimate": ("estimate configuration.yaml --workers 1", "estimate rows.json --workers 1"),
    "check": ("check order.json", "check torch-csv.csv", "check json.json", f"check zbv {_SHAPED}", "check -"),
    "export": (
        *(f"export zbv {_SHAPED} --to {to}" for to in ("json", "torch-csv", "trace", "megatron", "zb-nodes")),
        "export",
    ),
    "profile": ("profile --from traces", "profile --from traces -o costs.yaml"),
    "run": ("run -p 2 -m 2 --steps 1 --warmup 0 --timeout 20",),
    "diff": ("diff 1f1b traces", "diff json.json json.json"),
    "convert": ("convert order.json x.csv", "convert json.json x.svg", "convert costs.costs.json y.costs.json"),
    "serve": ("serve --port 0",),
}
"""What each command is asked in earnest, small enough for a fraction of a second; others are asked for by name alone."""

_SELDOM = {"run": 0.02, "profile": 0.4, "serve": 0.15, "plan": 0.5}
"""How often a command is tried beside the others: these take seconds."""

_PLAINLY = 0.15
"""How often nothing is wrong but one value, which must then be refused."""


def command_line(luck: random.Random) -> list[str]:
    """What stands behind ``pipeplan``."""
    known = commands()
    weights = [_SELDOM.get(name, 1.0) for name in known]
    command = luck.choices(known, weights)[0]
    if luck.random() < 0.02:
        return _nonsense(luck)
    line = luck.choice(HONEST.get(command, (command,))).split()
    if luck.random() < _PLAINLY:
        return with_a_wrong_value(line, luck)
    for _ in range(luck.choice((0, 1, 1, 1, 2, 3))):
        luck.choices((_with_option, _with_place, _with_stray), (12, 2, 1))[0](line, command, luck)
    if "--json" not in line and luck.random() < 0.4 and command != "serve":
        line.append("--json")
    return line


def _nonsense(luck: random.Random) -> list[str]:
    """What names no command, or several."""
    return list(
        luck.choice(
            (
                *(
                    (),
                    ("--help",),
                    ("-h",),
                    ("--version",),
                    ("simulate", "--help"),
                    ("simulat",),
                    ("",),
                    ("--",),
                    ("-",),
                ),
                *(
                    ("simulate", "check", "order.json"),
                    ("--json",),
                    ("\x1b[31m",),
                    ("help",),
                    ("--", "simulate"),
                    ("\udcff",),
                ),
                *(
                    ("--help", "nonsense"),
                    ("simulate", "--", "--json"),
                    ("check", "--", "-p"),
                    ("x" * 100_000,),
                    ("--version", "x"),
                ),
            )
        )
    )


def _with_option(line: list[str], command: str, luck: random.Random) -> None:
    """Give an option of the command a value, in place of the one that it has, or sometimes beside it."""
    options = [each for each in options_of(command) if each.names]
    option = luck.choice(options)
    if luck.random() < 0.9:
        line[:] = without(line, option, options)
    line += _said(option, luck)


def _said(option: Option, luck: random.Random) -> list[str]:
    name = luck.choice(option.names)
    if option.kind == "bool" and luck.random() < 0.8:
        return [name]
    value = hostile(option, luck)
    if luck.random() < 0.5:
        return [f"{name}={value}"]
    if not name.startswith("--") and luck.random() < 0.3:
        return [f"{name}{value}"]
    return [name, value]


def _with_place(line: list[str], command: str, luck: random.Random) -> None:
    """Change an argument by its place, or add one."""
    places = [each for each in options_of(command) if not each.names]
    value = hostile(luck.choice(places) if places else Option((), "text", (), False), luck)
    given = [at for at in range(1, len(line)) if not line[at].startswith("-") and not line[at - 1].startswith("-")]
    if given and luck.random() < 0.8:
        line[luck.choice(given)] = value
    else:
        line.insert(1, value)


def _with_stray(line: list[str], command: str, luck: random.Random) -> None:
    """An option of another command, one that nobody knows, or a word twice."""
    other = luck.choice(commands())
    names = [name for each in options_of(other) for name in each.names]
    if luck.random() < 0.5 and other not in ("serve", "run"):
        line.append(luck.choice(names))
    elif luck.random() < 0.5:
        line.append(
            luck.choice(
                ("--unknown", "--unknown=1", "-Z", "--", "---", "-", "=", "--=", "--no-", "-p-m", "--empty-output")
            )
        )
    else:
        line.append(luck.choice(line))
