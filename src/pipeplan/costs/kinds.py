"""Kinds of options: what their values are, how the shell reads them from words, and how they are checked.

A new kind is a row of :data:`KINDS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from pipeplan.costs.setting import Setting, SettingKind
from pipeplan.costs.values import parse_duration, parse_limit, ranges_in
from pipeplan.costs.written_numbers import NUMBER, count_fault, number_fault, parse_count, parse_number
from pipeplan.foundation.errors import CostError, InputError, ShapeError, UnknownNameError
from pipeplan.foundation.files import STANDARD_INPUT, path_of
from pipeplan.model import MOST_FORWARDS, in_digits, require_flags, require_text, shortened


@dataclass(frozen=True, slots=True)
class OptionKind:
    """A kind of option.

    Attributes
    ----------
    values
        Description of its values.
    held
        Type of the values of its option in the shell.
    parse
        Parser of the option's words, which is called with the option's name and its words, for numbers also with their unit;
        None: the shell's own, by ``held``.
    several
        True if the option takes several words.
    check
        Check of a value of the right type; None if every value is valid, or is checked where it is used.
    reader
        Function of :mod:`pipeplan.costs` that reads its values from a file, if the shell's option may name one.
    keyword
        Type of its keyword in Python, if that is wider than the type of its field, which holds tuples.
    """

    values: str
    held: Any
    parse: Callable[..., Any] | None = None
    several: bool = False
    check: Callable[[Setting, Any], None] | None = None
    reader: str = ""
    keyword: str = ""


# Parsers of words: of the option's name and its words, which the shell has separated at blanks.


def _parts(words: Iterable[str]) -> list[str]:
    """Return values separated by spaces or commas, or both in quotes (``"1, 2"``); ``-f=1`` is ``-f 1``."""
    texts = [word.removeprefix("=") for word in words]
    parts = [part.strip() if "," in text else part for text in texts for part in text.split(",")]
    return [part for part in parts if part]


def _joined(parts: Iterable[str]) -> list[str]:
    """Return sizes, each with the unit that stands behind it as a word of its own: ``12 gib`` is one size."""
    sizes: list[str] = []
    for part in parts:
        if sizes and part.isalpha() and NUMBER.fullmatch(sizes[-1]):
            sizes[-1] += part
        else:
            sizes.append(part)
    return sizes


def _number(option: str, words: Sequence[str], unit: str = "") -> float:
    return parse_number(_as_written(words[0]).removeprefix("="), option, unit)


def _count(option: str, words: Sequence[str]) -> int:
    return parse_count(_as_written(words[0]).removeprefix("="), option)


def _as_written(word: str) -> str:
    """Return a word as the user wrote it; ``-`` is replaced by the name of a file at this point."""
    return "-" if word == STANDARD_INPUT else word


def _numbers(option: str, words: Sequence[str], unit: str = "") -> tuple[float, ...]:
    _require_points(option, words)
    parts = [_as_written(part) for part in _parts(words)]
    numbers = tuple(parse_number(part, option, unit) for part in (_joined(parts) if unit == "bytes" else parts))
    if not numbers:
        raise CostError(
            f"{option} needs a number, or a list of numbers, such as {option} {'2GiB' if unit == 'bytes' else 1}"
        )
    return numbers


def _require_points(option: str, words: Iterable[str]) -> None:
    """Refuse ``1,5GiB``: commas separate values, and each of those would have its own unit."""
    for word in words:
        if match := re.fullmatch(r"=?(-?[0-9]+),([0-9]+\s*[A-Za-z]+)", word):
            raise CostError(
                f"{option}: invalid size '{match[1]},{match[2]}': use a decimal point, {match[1]}.{match[2]}, "
                "or give each value its unit"
            )


def _texts(option: str, words: Sequence[str]) -> tuple[str, ...]:
    texts = tuple(_parts(words))
    if not texts:
        raise CostError(f"{option} needs a value: 'pipeplan help costs' shows examples")
    return texts


def _limits(option: str, words: Sequence[str]) -> tuple[str, ...]:
    _require_points(option, words)
    return tuple(_joined(_texts(option, words)))


def _counts(option: str, words: Sequence[str]) -> tuple[int, ...]:
    return tuple(parse_count(text, option) for text in _texts(option, words))


def _stage_layers(option: str, words: Sequence[str]) -> tuple[int | str, ...]:
    """Return integers, or any other words as one text: a layout."""
    if any(re.fullmatch(r"[+-]?[0-9]+", text) for text in _texts(option, words)):
        return _counts(option, words)
    return (" ".join(word.removeprefix("=") for word in words),)


def _factors(option: str, words: Sequence[str]) -> tuple[float | str, ...]:
    """Return numbers, or the name of a file."""
    parts = _parts(words)
    if len(parts) == 1 and not NUMBER.fullmatch(parts[0]):
        return (str(_path(option, words)),)
    return _numbers(option, words)


def _stages(option: str, words: Sequence[str]) -> str:
    return ",".join(_texts(option, words))


def _text(_: str, words: Sequence[str]) -> str:
    return words[0]


def _path(option: str, words: Sequence[str]) -> Path:
    return path_of(words[0], option or "the file")


def _paths(option: str, words: Sequence[str]) -> tuple[Path, ...]:
    return tuple(_path(option, [word]) for word in words)


# Checks of values.


def _check_numbers(setting: Setting, value: Any) -> None:
    assert setting.range is not None
    several = setting.kind in ("per_stage", "pair_times") and isinstance(value, tuple | list)
    if several and not value:
        raise CostError(f"{setting.name.replace('_', ' ')}: the list is empty", field=setting.name)
    for stage, entry in enumerate(value if several else [value]):
        number = entry.item() if isinstance(entry, np.generic) else entry
        fault = _fault_of_type(setting, number) or setting.range.fault(number)
        if fault is not None:
            place = f" of stage {stage}" if several else ""
            raise _error_of(setting)(f"{setting.noun}{place}{fault}", field=setting.name)


def _check_pair_times(setting: Setting, value: Any) -> None:
    """Check the numbers of a list or table; that a table has a row and a value per stage is checked with the stages."""
    assert setting.range is not None
    if not isinstance(value, tuple | list) or not any(isinstance(row, tuple | list) for row in value):
        _check_numbers(setting, value)
        return
    for forward, row in enumerate(value):
        for backward, number in enumerate(row if isinstance(row, tuple | list) else ()):
            if fault := _fault_of_type(setting, number) or setting.range.fault(number):
                stages = f"the forward of stage {forward} and the backward of stage {backward}"
                raise CostError(f"{setting.noun} of {stages}{fault}", field=setting.name)


def _check_tables(setting: Setting, value: Any) -> None:
    for table in _tables_in(value):
        _check_lists(setting, table)


def _tables_in(value: Any) -> Iterable[Any]:
    """Return the tables of a record of them, or the value as the only one."""
    return [getattr(value, item.name) for item in fields(value)] if is_dataclass(value) else [value]


def _check_lists(setting: Setting, value: Any) -> None:
    """Check a list of numbers, in which every number may be a list of numbers."""
    assert setting.range is not None
    words = setting.name.replace("_", " ")
    if not isinstance(value, tuple | list) or not value or any(entry in ((), []) for entry in value):
        raise CostError(
            f"{words} must be a list of numbers that is not empty, not {shortened(repr(value), _SHOWN)}",
            field=setting.name,
        )
    for place, entry in enumerate(value):
        for number in entry if isinstance(entry, tuple | list) else (entry,):
            fault = _fault_of_type(setting, number) or setting.range.fault(number)
            if fault is not None:
                raise CostError(f"{words}: number {place}{fault}", field=setting.name)


def _fault_of_type(setting: Setting, number: Any) -> str | None:
    """Return the end of an error message, as :meth:`Range.fault`, for values that are not numbers. Bools are not."""
    kind, words = (int, "a whole number") if setting.kind == "count" else (int | float, "a number")
    if type(number) is not bool and isinstance(number, kind):
        return None
    if isinstance(number, str):
        return f": {text_fault(setting, number)}"
    return f" must be {words}, not {shortened(repr(number), _SHOWN)}"


def text_fault(setting: Setting, text: str) -> str:
    """Return why a text is not a number of a setting, with the remedy, as in every door."""
    if NUMBER.fullmatch(text) and (setting.kind != "count" or text.lstrip("+-").isdecimal()):
        return f"expected a number, not the text '{text}': write it without quotes"
    return count_fault(text) if setting.kind == "count" else number_fault(text, setting.unit)


def _error_of(setting: Setting) -> type[InputError]:
    if not setting.of_costs:
        return InputError
    return ShapeError if setting.kind == "count" else CostError


_SHOWN = 60
"""Maximum length of a value in a message."""


def _check_choice(setting: Setting, value: Any) -> None:
    if not isinstance(value, str) or value not in setting.choices:
        raise UnknownNameError(setting.name, str(value), setting.choices, field=setting.name)


def _check_limit(_: Setting, value: Any) -> None:
    for limit in value if isinstance(value, tuple | list) else [value]:
        parse_limit(limit)


def _check_stages(setting: Setting, value: Any) -> None:
    if isinstance(value, str):
        if value not in ("none", "all"):
            ranges_in(value, setting.name)
    elif not _are_whole(value):
        raise ShapeError(
            f"{setting.name}: none, all, or stages such as 0-3,6, not {shortened(repr(value), _SHOWN)}",
            field=setting.name,
        )
    elif min(value, default=0) < 0:
        raise ShapeError(f"{setting.name}: there is no stage {min(value)}", field=setting.name)


def _are_whole(values: Any) -> bool:
    """Return True for a sequence of integers; bools do not count as integers."""
    several = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return several and all(type(number) is not bool and isinstance(number, Integral) for number in values)


def _check_layout(setting: Setting, value: Any) -> None:
    numbers = list(value) if isinstance(value, Iterable) else None
    if numbers is None or not _are_whole(numbers) or min(numbers, default=-1) < 0:
        shown = shortened(repr(value), _SHOWN)
        raise ShapeError(f"layers per stage must be whole numbers of at least 0, not {shown}", field=setting.name)
    if max(numbers) > MOST_FORWARDS:
        raise ShapeError(
            f"a stage has at most {MOST_FORWARDS:,} layers, not {in_digits(max(numbers), ',')}", field=setting.name
        )


def _check_stage_layers(setting: Setting, value: Any) -> None:
    check = _check_text if isinstance(value, str) else _check_layout
    check(setting, value)


def _check_text(setting: Setting, value: Any) -> None:
    require_text(value, setting.noun, longest=setting.longest, field=setting.name)


def _check_model(setting: Setting, value: Any) -> None:
    if not hasattr(value, "layers"):  # its class needs PyTorch
        _check_text(setting, value)


def _check_object(setting: Setting, value: Any) -> None:
    if isinstance(value, str):
        _check_text(setting, value)


def _check_path(setting: Setting, value: Any) -> None:
    if not isinstance(value, str | os.PathLike):
        raise InputError(
            f"{setting.noun} must be a file path, not {shortened(repr(value), _SHOWN)}", field=setting.name
        )
    path_of(value, setting.noun, field=setting.name)


def _check_paths(setting: Setting, value: Any) -> None:
    for path in value:
        _check_path(setting, path)


def _check_size(_: Setting, value: Any) -> None:
    parse_limit(value)


def _check_duration(setting: Setting, value: Any) -> None:
    parse_duration(value, setting.name)


def _check_flag(setting: Setting, value: Any) -> None:
    require_flags(**{setting.name: value})


def _check_names(setting: Setting, value: Any) -> None:
    for text in value if isinstance(value, Iterable) and not isinstance(value, str) else [value]:
        require_text(text, setting.noun, longest=setting.longest, field=setting.name)


_SEGMENTS = "Mapping[str, Any] | Sequence[OpSegments | Mapping[str, Any]] | None"
_LAYERS, _COUNTS = "Sequence[Layer | Mapping[str, Any]] | None", "Sequence[int] | None"

# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
KINDS: dict[SettingKind, OptionKind] = {
    "count": OptionKind("a whole number", int, _count, check=_check_numbers),
    "number": OptionKind("a number; in bytes also a size such as 2GiB", float, _number, check=_check_numbers),
    "per_stage": OptionKind("one number, or one per stage", tuple[float, ...], _numbers, True, _check_numbers),
    "pair_times": OptionKind(
        "one number, one per stage of the forward, or in a file a table: a list per stage of the forward",
        tuple[float, ...], _numbers, True, _check_pair_times, keyword="GivenTimes | GivenLengths | None",
    ),
    "segments": OptionKind("a list of segments for each op of a stage", None, keyword=_SEGMENTS),
    "choice": OptionKind("one of the choices, in any case", str, check=_check_choice),
    "name": OptionKind("one of the choices, or a plugin's name", str, _text, check=_check_text),
    "text": OptionKind("text", str, _text, check=_check_text),
    "flag": OptionKind("true or false", bool, check=_check_flag),
    "limit": OptionKind(
        "sizes with their unit, one or one per rank", tuple[str, ...], _limits, True, _check_limit,
        keyword="float | str | Sequence[float | str] | None",
    ),
    "stages": OptionKind(
        "a selection of stages", tuple[str, ...] | str, _stages, True, _check_stages, keyword="str | Sequence[int] | None"
    ),
    "layers": OptionKind("costs of each layer; in the shell a file", Path, _path, reader="load_layers", keyword=_LAYERS),
    "layout": OptionKind("number of layers per stage", tuple[int, ...], _counts, True, _check_layout, keyword=_COUNTS),
    "stage_layers": OptionKind(
        "number of layers per stage, or a trainer's text for it", tuple[int | str, ...], _stage_layers, True,
        _check_stage_layers, keyword="Sequence[int] | str | None",
    ),
    "per_microbatch": OptionKind(
        "one number per microbatch, or such a list per stage; in the shell also a file", tuple[float | str, ...], _factors,
        True, _check_tables, reader="load_factors", keyword="GivenFactors | None",
    ),
    "lengths": OptionKind(
        "tokens per microbatch, or of each of its documents; in the shell a file", Path, _path, check=_check_lists,
        reader="load_lengths", keyword="GivenLengths | None",
    ),
    "size": OptionKind("bytes, with or without a unit", str, _text, check=_check_size),
    "duration": OptionKind("seconds, with or without a unit", str, _text, check=_check_duration),
    "pairs": OptionKind("values by name", tuple[str, ...], None, True),
    "names": OptionKind("several words, or one text with commas", tuple[str, ...], check=_check_names),
    "schedules": OptionKind("names, files or schedules", tuple[str, ...]),
    "model": OptionKind("a name, or a PyTorch model", str, _text, check=_check_model),
    "object": OptionKind("text, or a Python object that is checked where it is used", str, _text, check=_check_object),
    "file": OptionKind("a path", Path, _path, check=_check_path),
    "files": OptionKind("paths", tuple[Path, ...], _paths, check=_check_paths),
}
# fmt: on


def check_value(setting: Setting, value: Any) -> None:
    """Check a value of the right type for a setting; None means not set. Raises InputError, ShapeError or CostError."""
    check = KINDS[setting.kind].check
    if value is not None and check is not None:
        check(setting, value)
