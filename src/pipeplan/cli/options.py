"""The options that commands share: those of the settings are made from their table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token

from pipeplan.api import Look, output_endings
from pipeplan.costs import SETTINGS, Setting, SettingKind, load_layers, parse_size
from pipeplan.drawing import SizeName, ThemeName
from pipeplan.errors import CostError, InputError

OUTPUT = Group("Input and output", sort_key=4)
"""What is read and written, below the settings' groups."""

_SHAPE = Group("Shape", sort_key=1)
_COSTS = Group("Costs", sort_key=2)
_MEMORY = Group("Memory", sort_key=3)

_GROUPS = {"shape": _SHAPE, "more": _SHAPE, "times": _COSTS, "details": _COSTS, "memory": _MEMORY}
"""Where the help lists the settings of each group."""


def _words(tokens: Sequence[Token]) -> list[str]:
    """The words of an option: apart by blanks or commas; ``-f=1`` is ``-f 1``."""
    return [word for token in tokens for word in token.value.removeprefix("=").split(",") if word]


def _number(token: Token, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise CostError(f"{token.keyword}: '{word}' is no number") from None


def _to_numbers(_: Any, tokens: Sequence[Token]) -> tuple[float, ...]:
    numbers = tuple(_number(tokens[0], word) for word in _words(tokens))
    if not numbers:
        raise CostError(f"{tokens[0].keyword} needs a number, or one per stage")
    return numbers


def _size(token: Token, word: str) -> float:
    return parse_size(word, token.keyword or "a size")


def _to_sizes(_: Any, tokens: Sequence[Token]) -> tuple[float, ...]:
    sizes = tuple(_size(tokens[0], word) for word in _words(tokens))
    if not sizes:
        raise CostError(f"{tokens[0].keyword} needs a number of bytes, or one per stage")
    return sizes


def _to_size(_: Any, tokens: Sequence[Token]) -> float:
    return _size(tokens[0], tokens[0].value.removeprefix("="))


def _to_number(_: Any, tokens: Sequence[Token]) -> float:
    return _number(tokens[0], tokens[0].value.removeprefix("="))


def _count(token: Token, word: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", word):
        raise InputError(f"{token.keyword}: '{word}' is no whole number")
    return int(word)


def _to_count(_: Any, tokens: Sequence[Token]) -> int:
    return _count(tokens[0], tokens[0].value.removeprefix("="))


def to_counts(_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Whole numbers, apart by blanks or commas. Raises InputError for anything else."""
    return tuple(_count(tokens[0], word) for word in _to_words(_, tokens))


def _to_words(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    words = tuple(_words(tokens))
    if not words:
        raise CostError(f"{tokens[0].keyword} needs a value")
    return words


def _to_stages(_: Any, tokens: Sequence[Token]) -> str:
    return ",".join(_to_words(_, tokens))


def _option(group: Group, text: str, *names: str, convert: Callable[..., Any] | None = None, many: bool = False) -> Any:
    return Parameter(
        name=names,
        help=text,
        group=group,
        converter=convert,
        consume_multiple=many,
        show_default=False,
        negative_iterable=(),
    )


_TYPES: dict[SettingKind, tuple[Any, Callable[..., Any] | None, bool]] = {
    "count": (int, _to_count, False),
    "number": (float, _to_number, False),
    "per_stage": (tuple[float, ...], _to_numbers, True),
    "text": (str, None, False),
    "flag": (bool, None, False),
    "limit": (tuple[str, ...], _to_words, True),
    "stages": (tuple[str, ...] | str, _to_stages, True),
    "layers": (Path, None, False),
    "layout": (tuple[int, ...], to_counts, True),
    "size": (str, None, False),
    "pairs": (tuple[str, ...], None, True),
    "file": (Path, None, False),
}
"""What the options of each kind of setting hold, how words become that, and whether there may be several words."""


def option_of(setting: Setting, group: Group) -> Any:
    """The annotation of a setting's option."""
    held, convert, many = (Literal[setting.choices], None, False) if setting.kind == "choice" else _TYPES[setting.kind]
    if setting.in_bytes:
        convert = _to_sizes if many else _to_size
    option = _option(group, setting.full_help, *setting.options, convert=convert, many=many)
    return Annotated[held | None, option]


_GivenSettings: Any = make_dataclass(
    "_GivenSettings",
    [(setting.name, option_of(setting, _GROUPS[setting.group]), None) for setting in SETTINGS.values()],
    frozen=True,
    kw_only=True,
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SettingOptions(_GivenSettings):  # type: ignore[misc]
    """Shape and costs: a field for each setting, None where the command line does not say."""

    config: Annotated[
        Path | None,
        _option(OUTPUT, "YAML, TOML or JSON with any of these; options override it.", "--config", "-c"),
    ] = None

    def given(self) -> dict[str, Any]:
        """The settings that the command line gives; a list of one is a number for all.

        Raises
        ------
        InputError
            For a file of layers that cannot be read or understood.
        """
        said = {name: getattr(self, name) for name in SETTINGS}
        return {name: self._value(SETTINGS[name].kind, value) for name, value in said.items() if value is not None}

    def files(self) -> list[Path]:
        """The files that are read for the settings."""
        found = [self.config, *(getattr(self, name) for name, about in SETTINGS.items() if about.kind == "layers")]
        return [path for path in found if path is not None]

    @staticmethod
    def _value(kind: SettingKind, value: Any) -> Any:
        if kind == "layers":
            return load_layers(value)
        if kind == "layout":
            return value
        return value[0] if isinstance(value, tuple) and len(value) == 1 else value


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LookOptions:
    """How pictures look."""

    theme: Annotated[ThemeName | None, _option(OUTPUT, "The colours of pictures (light).", "--theme")] = None
    size: Annotated[
        SizeName | None,
        _option(
            OUTPUT,
            "How large pictures are: a 16:9 slide, a page as high as it needs to be, or a paper's column (page).",
            "--size",
        ),
    ] = None

    @property
    def look(self) -> Look:
        """What is said of it, as keywords for saving."""
        look = Look()
        if self.theme is not None:
            look["theme"] = self.theme
        if self.size is not None:
            look["size"] = self.size
        return look


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OutputOptions(LookOptions):
    """Where the answer goes."""

    output: Annotated[
        tuple[Path, ...],
        _option(OUTPUT, f"The ending chooses: {' '.join(output_endings())}; repeatable.", "--output", "-o"),
    ] = ()
    no_visualization: Annotated[
        bool, _option(OUTPUT, "No picture but those of --output, in the terminal neither.", "--no-visualization")
    ] = False


Json = Annotated[bool, _option(OUTPUT, "One JSON object on stdout, and nothing else there.", "--json")]
Debug = Annotated[bool, _option(OUTPUT, "Show the traceback of an error.", "--debug")]
