"""The reference page of settings and options: each stands in one row, however many commands take it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from docs.build.commands import arguments_of, commands, named, option_help
from pipeplan.costs import GROUPS, SETTING_GROUPS, SETTINGS, Setting

_HEAD = """# Options and settings

An option has the same name in the shell (`--memory-limit 12GiB`), in config files (`memory_limit: 12GiB`), in Python
(`memory_limit="12GiB"`) and in the web API. `pipeplan COMMAND --help-all` prints those of one command, with its arguments.
Options with `,...` are repeatable and take commas.

## Settings of shape and costs

Taken by {takers}.
Names without `--` are only for config files (`-c`) and Python; so are those with \\* for `search` and `pareto`.
Counts are at least 1, times positive, sizes at least 0; their default is 0 where none is stated and none follows.

A list has one value per stage, or one per rank; with as many stages as ranks it is per stage. A time of a rank is that of
all its chunks together, unless `times_per` is `stage`; a size of a rank always is. With two copies of the model, the
chunks are those of the first copy.

Missing times follow from the others: a full backward pass is the sum of its halves, or twice the forward pass; each half is
half of it, or as long as the forward pass; an overlapped pair takes the sum of both. The answer lists its assumptions.
"""

_ENDING = re.compile(r"\s*\((default: [^()]*)\)\.?$")
"""The default at the end of a help text."""

_SEVERAL = re.compile(r"; repeatable(,? or (comma-separated|with commas))?(?=[. ])")
"""What ``,...`` says behind an option."""

_LARGE = 1_000_000
"""The least upper end of a range that no user meets."""

Rows = Sequence[tuple[str, ...]]


def options_markdown() -> str:
    """Return the page: settings by group, options that commands share, and the rest by command."""
    taken = {name: _own(app) for name, app in commands().items()}
    return "\n".join(
        [
            _HEAD.format(takers=_listed(_takers())),
            *_settings(),
            "## Options of several commands\n",
            *_table("option|commands|meaning", _shared(taken)),
            "## Options of one command\n",
            *_single(taken),
        ]
    )


def _takers() -> list[str]:
    """Return the commands that take the settings."""
    return [name for name, app in commands().items() if _builds(arguments_of(app)[1])]


def _builds(options: Iterable[Any]) -> bool:
    """Return whether a command with these options takes the settings."""
    return any(option.names[0] == SETTINGS["ranks"].options[0] for option in options)


def _own(app: Any) -> Rows:
    """Return the options of a command, but for the settings: names and meaning."""
    options = arguments_of(app)[1]
    settings = {option for setting in SETTINGS.values() for option in setting.options} if _builds(options) else set()
    return [
        (named(option), _meaning(named(option), option_help(option, listed=False)))
        for option in options
        if option.names[0] not in settings
    ]


def _settings() -> Iterator[str]:
    for group in SETTING_GROUPS:
        yield f"### {GROUPS[group]}\n"
        rows = [(_named(each), _described(each)) for each in SETTINGS.values() if each.group == group]
        yield from _table("setting|meaning", rows)


def _named(setting: Setting) -> str:
    if setting.shell == "none":
        return f"`{setting.name}`"
    shown = [setting.options[0], *setting.flags]
    return ", ".join(f"`{option}`" for option in shown) + ("\\*" if setting.shell == "schedules" else "")


def _described(setting: Setting) -> str:
    """Return the help of a setting, with choices that it does not name, a range of shares or factors, and its default."""
    about = []
    if not all(re.search(rf"\b{re.escape(choice)}\b", setting.help) for choice in setting.choices):
        about.append(", ".join(f"`{choice}`" for choice in setting.choices))
    if setting.range is not None and (setting.range.most or _LARGE) < _LARGE:
        about.append(f"{setting.range.least:g} to {setting.range.most:,}")
    if setting.default not in ("", "-", "0", "none"):
        about.append(f"default: {setting.default}")
    text = setting.help.replace("|", "\\|")
    return f"{text.removesuffix('.')} ({'; '.join(about)})." if about else text


def _shared(taken: dict[str, Rows]) -> Rows:
    """Return the options of several commands, those of most commands first."""
    shared = {}
    for row in dict.fromkeys(row for rows in taken.values() for row in rows):
        takers = [name for name, rows in taken.items() if row in rows]
        if len(takers) > 1:
            shared[row] = takers
    ordered = sorted(shared.items(), key=lambda entry: -len(entry[1]))
    return [(names, _takers_of(takers, list(taken)), meaning) for (names, meaning), takers in ordered]


def _takers_of(takers: list[str], every: list[str]) -> str:
    if takers == _takers():
        return "all that take settings"
    others = [name for name in every if name not in takers]
    return f"all but {_listed(others)}" if len(others) < len(takers) / 2 else ", ".join(takers)


def _single(taken: dict[str, Rows]) -> Iterator[str]:
    """Yield a section for each command that has options which no other has."""
    for name, own in taken.items():
        rows = [row for row in own if sum(row in rows for rows in taken.values()) == 1]
        if rows:
            yield f"### {name}\n"
            yield from _table("option|meaning", rows)


def _table(head: str, rows: Rows) -> Iterator[str]:
    """Yield the lines of a table without blanks between its cells: they are no words."""
    yield f"|{head}|"
    yield f"|{'|'.join('---' for _ in head.split('|'))}|"
    yield from (f"|{'|'.join(in_table(cell) for cell in row)}|" for row in rows)
    yield ""


def _meaning(names: str, text: str) -> str:
    """Return a help text without what ``,...`` in the names of its option says, its default within its last sentence."""
    text = _SEVERAL.sub("", text) if ",..." in names else text
    return _ENDING.sub(r" (\1).", text).replace(". (default", " (default").replace("..", ".")


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def in_table(code: str) -> str:
    """Return code with its bars as entities: viewers of Markdown differ in what a bar within code does to a table."""
    return re.sub(r"`([^`]*\|[^`]*)`", lambda match: f"<code>{match[1].replace('|', '&#124;')}</code>", code)
