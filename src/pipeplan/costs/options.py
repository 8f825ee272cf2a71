"""Options, each declared once as a field of a record, with its type, range and documentation.

The command line, config files, Python signatures, the web API, its form and the reference pages derive from the records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from pipeplan.costs.kinds import check_value
from pipeplan.costs.setting import Group, Setting, SettingKind, Shell
from pipeplan.costs.values import Range
from pipeplan.foundation.errors import InputError, UnknownNameError


def option(
    value: Any = None,
    /,
    *,
    kind: SettingKind,
    group: Group,
    help: str,
    title: str = "",
    default: str = "",
    unit: str = "",
    range: Range | None = None,
    aliases: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    hint: str = "",
    slider: tuple[float, float, float] | None = None,
    follows: tuple[tuple[str, float], ...] = (),
    only_with: tuple[str, str] | None = None,
    in_form: bool = True,
    usual: bool = True,
    shell: Shell = "all",
    longest: int = 40,
    keyword: str = "",
) -> Any:
    """Declare a field of a record of options with its :class:`Setting`, which is named after the field.

    ``value`` is the default of the field; ``...`` means that the option is required.
    """
    setting = Setting(
        name="",
        kind=kind,
        group=group,
        help=help,
        title=title,
        default=default or _in_words(value),
        unit=unit,
        range=range,
        aliases=aliases,
        flags=flags,
        choices=choices,
        hint=hint,
        slider=slider,
        follows=follows,
        only_with=only_with,
        in_form=in_form,
        usual=usual,
        shell=shell,
        longest=longest,
        keyword=keyword,
    )
    return field(metadata={"setting": setting}, **({} if value is ... else {"default": value}))


def _in_words(default: Any) -> str:
    """Return a default as help texts show it; empty for flags that are off and for None."""
    number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g}" if number else default if isinstance(default, str) else ""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of the records of options, whose values are checked when a record is made, and then trusted.

    Choices get their own spelling, because names are accepted in any case.
    """

    def __post_init__(self) -> None:
        settings = table_of(type(self))
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not item.default and item.name in settings:
                spelled = settings[item.name].spelled(value)
                object.__setattr__(self, item.name, spelled)
                check_value(settings[item.name], spelled)


def table_of(record: type[Any]) -> Mapping[str, Setting]:
    """Return the settings of a record of options, by name."""
    return _table_of(record)  # type: ignore[arg-type]


@cache
def _table_of(record: Hashable) -> Mapping[str, Setting]:
    return MappingProxyType(
        {
            item.name: _named(item.metadata["setting"], item.name)
            for item in fields(cast("Any", record))
            if "setting" in item.metadata
        }
    )


def _named(setting: Setting, name: str) -> Setting:
    return replace(setting, name=name, title=setting.title or name.replace("_", " ").capitalize())


_Record = TypeVar("_Record", bound=Options)


def options_of(record: type[_Record], values: Mapping[str, Any]) -> _Record:
    """Return a record from keywords. None means not set; numpy's numbers become Python's, lists become tuples."""
    table = table_of(record)
    for name in values:
        if name not in table:
            raise UnknownNameError("option", name, table, field=name)
    plain = {name: _plain(value) for name, value in values.items() if value is not None}
    if missing := missing_in(record, plain):
        raise InputError(f"missing: {', '.join(missing)}", field=missing[0])
    return record(**plain)


def missing_in(record: type[Options], values: Mapping[str, Any]) -> list[str]:
    """Return the options of a record that have no default and no value."""
    return [item.name for item in fields(record) if item.default is MISSING and values.get(item.name) is None]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value


def names_of(names: str | Iterable[str]) -> list[str]:
    """Return names that are given as several texts, or as one text with commas between them."""
    texts = [names] if isinstance(names, str) else names
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]
