"""The options that commands share: those of the settings are made from their table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from cyclopts import Group, Parameter, Token
from cyclopts import convert as convert_as

from pipeplan.costs import SETTINGS, Setting, SettingKind, load_layers, parse_size
from pipeplan.drawing import SizeName, ThemeName
from pipeplan.errors import CostError, InputError
from pipeplan.files import path_of
from pipeplan.formats import STANDARD_INPUT
from pipeplan.model import shortened

if TYPE_CHECKING:
    from pipeplan.api import Look

OUTPUT = Group("Input and output", sort_key=4)
"""What is read and written, below the settings' groups."""

_SHAPE = Group("Shape", sort_key=1)
_COSTS = Group("Costs", sort_key=2)
_MEMORY = Group("Memory", sort_key=3)

_GROUPS = {"shape": _SHAPE, "more": _SHAPE, "times": _COSTS, "details": _COSTS, "memory": _MEMORY}
"""Where the help lists the settings of each group."""


def _words(tokens: Sequence[Token]) -> list[str]:
    """The words of an option: apart by blanks or commas, or both in quotes (``"1, 2"``); ``-f=1`` is ``-f 1``."""
    texts = (token.value.removeprefix("=") for token in tokens)
    words = (word.strip() if "," in text else word for text in texts for word in text.split(","))
    return [word for word in words if word]


_NUMBER = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf|nan)")
"""What is no number that can be is refused by the range of its setting, which says why."""


def _number(token: Token, word: str) -> float:
    if not _NUMBER.fullmatch(word):
        raise CostError(f"{token.keyword}: '{_short(word)}' is no number")
    return float(word)


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
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", word):
        digits = re.fullmatch(r"[+-]?[0-9]+", word)
        if digits:
            raise InputError(f"{token.keyword}: a whole number of {len(word):,} digits is too large")
        raise InputError(f"{token.keyword}: '{_short(word)}' is no whole number")
    return int(word)


def _short(word: str) -> str:
    """A word in a message; ``-`` alone has been given the name of a file by now."""
    return "-" if word == STANDARD_INPUT else shortened(word, 60)


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


def _to_text(_: Any, tokens: Sequence[Token]) -> str:
    return tokens[0].value


def _to_path(_: Any, tokens: Sequence[Token]) -> Path:
    return path_of(tokens[0].value, tokens[0].keyword or "the file")


def _to_paths(_: Any, tokens: Sequence[Token]) -> tuple[Path, ...]:
    return tuple(_to_path(_, [token]) for token in tokens)


def _to_stages(_: Any, tokens: Sequence[Token]) -> str:
    return ",".join(_to_words(_, tokens))


def _option(
    group: Group | None, text: str, *names: str, convert: Callable[..., Any] | None = None, many: bool = False
) -> Any:
    by_type: dict[str, Any] = (
        {} if convert is None else {"converter": convert}
    )  # None would take the place of the app's own
    if group is not None:  # a group of None would leave the option out of the help
        by_type["group"] = group
    return Parameter(name=names, help=text, consume_multiple=many, show_default=False, negative_iterable=(), **by_type)


_TYPES: dict[SettingKind, tuple[Any, Callable[..., Any] | None, bool]] = {
    "count": (int, _to_count, False),
    "number": (float, _to_number, False),
    "per_stage": (tuple[float, ...], _to_numbers, True),
    "text": (str, _to_text, False),
    "flag": (bool, None, False),
    "limit": (tuple[str, ...], _to_words, True),
    "stages": (tuple[str, ...] | str, _to_stages, True),
    "layers": (Path, _to_path, False),
    "layout": (tuple[int, ...], to_counts, True),
    "size": (str, _to_text, False),
    "pairs": (tuple[str, ...], None, True),
    "file": (Path, _to_path, False),
}
"""What the options of each kind of setting hold, how words become that, and whether there may be several words."""


_BY_TYPE: dict[Any, Callable[..., Any]] = {
    int: _to_count,
    float: _to_number,
    Path: _to_path,
    tuple[Path, ...]: _to_paths,
    tuple[int, ...]: to_counts,
    tuple[float, ...]: _to_numbers,
}


def from_words(held: Any, tokens: Sequence[Token]) -> Any:
    """What the words of any option or argument stand for that has no rule of its own: numbers and paths as everywhere.

    Left to themselves, ``1.5`` would be the whole number 2, ``1_0`` 10, and ``x.csv/`` the file ``x.csv``.
    """
    plain = [each for each in get_args(held) if each is not NoneType] if isinstance(held, UnionType) else [held]
    convert = _BY_TYPE.get(plain[0]) if len(plain) == 1 else None
    return convert_as(held, tokens) if convert is None else convert(held, tokens)


def option_of(setting: Setting, group: Group) -> Any:
    """The annotation of a setting's option, which is None where the command line does not say."""
    held = Literal[setting.choices] if setting.kind == "choice" else _TYPES[setting.kind][0]
    return Annotated[held | None, parameter_of(setting, group)]


def parameter_of(setting: Setting, group: Group | None = None) -> Parameter:
    """A setting's option; a value that it cannot have is refused before anything is done."""
    _, convert, many = (None, None, False) if setting.kind == "choice" else _TYPES[setting.kind]
    if setting.in_bytes:
        convert = _to_sizes if many else _to_size
    checked = None if convert is None else _checked(setting, convert)
    found: Parameter = _option(group, setting.full_help, *setting.options, convert=checked, many=many)
    return found


def _checked(setting: Setting, convert: Callable[..., Any]) -> Callable[..., Any]:
    """A converter that looks at what comes of the words, too."""

    def converted(held: Any, tokens: Sequence[Token]) -> Any:
        value = convert(held, tokens)
        if setting.kind != "layers":
            setting.check(
                value[0] if isinstance(value, tuple) and len(value) == 1 and setting.kind != "layout" else value
            )
        return value

    return converted


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
        look: Look = {}
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
        _option(
            OUTPUT,
            "File to write; repeatable. The ending chooses the format, such as .png, .svg, .html, .csv or .json; an "
            "unknown ending lists all.",
            "--output",
            "-o",
        ),
    ] = ()
    no_visualization: Annotated[
        bool, _option(OUTPUT, "No picture but those of --output, in the terminal neither.", "--no-visualization")
    ] = False


Json = Annotated[bool, _option(OUTPUT, "One JSON object on stdout, and nothing else there.", "--json")]
Debug = Annotated[bool, _option(OUTPUT, "Show the traceback of an error.", "--debug")]
