"""The reference of all settings as Markdown, made from their table.

``python -m pipeplan.costs.reference > docs/reference/settings.md`` writes it; a test holds the file current.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.costs.setting import GROUPS, Range, Setting
from pipeplan.costs.settings import SETTINGS

_HEAD = """# Settings

Shape and costs have the same names everywhere: in the shell (`--forward-times`), in config files (`forward_times: 12.1`),
in Python (`pipeplan.simulate("zbv", forward_times=12.1)`), in the web app's form and in its JSON API. An error about one
carries its name.

A list has a value for each stage. One number of times is what all the chunks of a rank take together, unless `times_per`
is `stage`; one number of bytes is always for all the chunks of a rank together.

What is not given follows from what is: a full backward from its halves, or else twice the forward; each half from the
full backward, or else as long as the forward; an overlapped forward and backward is their sum; a recomputation takes as
long as the forward. The answer says what was assumed.
"""


def settings_markdown() -> str:
    """The reference: a section a group, a row a setting."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for group, title in GROUPS.items():
        yield f"## {title}\n"
        yield "| setting | shell | meaning | default | range |"
        yield "|---|---|---|---|---|"
        yield from (_row(setting) for setting in SETTINGS.values() if setting.group == group)
        yield ""


def _row(setting: Setting) -> str:
    cells = (
        f"`{setting.name}`",
        ", ".join(f"`{flag}`" for flag in setting.options),
        setting.help,
        setting.default or "-",
        _range(setting),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _range(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.range is None:
        return setting.unit or "-"
    unit = "" if setting.unit in ("", "time") else f" {setting.unit}"
    return f"{_in_words(setting.range)}{unit}"


def _in_words(range_: Range) -> str:
    if range_.most is not None:
        return f"{range_.least:g} to {range_.most:,}"
    return f"more than {range_.least:g}" if range_.open else f"at least {range_.least:g}"


if __name__ == "__main__":
    print(settings_markdown(), end="")
