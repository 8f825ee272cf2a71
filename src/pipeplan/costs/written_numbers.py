"""Numbers and sizes as people write them: what they mean, and the remedy for a text that is not one.

The shell, config files, Python and the web refuse the same text with the same sentence: all of them call this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pipeplan.foundation.errors import CostError, InputError
from pipeplan.model import shortened

NUMBER = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf|nan)")
"""Numbers; inf and nan are among them, so that the range of the setting refuses them and says why."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")

_SHOWN = 60
"""Maximum length of a value in a message."""


def parse_number(text: str, where: str, unit: str = "", *, field: str = "") -> float:
    """Return the number in a text; ``where`` is its option or setting, ``unit`` that of the setting.

    Raises CostError with a remedy for any other text. For the unit ``bytes``, the text may be a size such as ``2GiB``.
    """
    if unit == "bytes":
        return parse_size(text, where, field=field)
    if not NUMBER.fullmatch(text):
        raise CostError(f"{where}: {number_fault(text, unit, shell=where.startswith('-'))}", field=field)
    return float(text)


def parse_count(text: str, where: str, *, field: str = "") -> int:
    """Return the integer in a text. Raises InputError with a remedy for any other text."""
    if not _WHOLE.fullmatch(text):
        if re.fullmatch(r"[+-]?[0-9]+", text):
            raise InputError(f"{where}: an integer of {len(text):,} digits is too large", field=field)
        raise InputError(f"{where}: {count_fault(text)}", field=field)
    return int(text)


def number_fault(text: str, unit: str = "", *, shell: bool = False) -> str:
    """Return why a text is not a number, with the remedy: ``invalid number '0,4': use a decimal point, 0.4``.

    ``shell`` selects the spelling of other settings that a remedy names: ``--time-unit ms``.
    """
    remedy = _remedy(_FAULTS_OF_NUMBERS, text, unit) or "expected a number such as 0.5"
    if shell:
        remedy = remedy.replace("set time_unit to ", "add --time-unit ")
    return f"invalid number '{shortened(text, _SHOWN)}': {remedy}"


def count_fault(text: str) -> str:
    """Return why a text is not an integer, with the remedy: ``invalid integer '8k': write all digits, 8000 or 8192``."""
    remedy = _remedy(_FAULTS_OF_COUNTS, text, "") or "expected a whole number such as 4"
    return f"invalid integer '{shortened(text, _SHOWN)}': {remedy}"


# Remedies, each with the pattern of the texts that it is for. The first pattern that matches counts.

_DIGITS = r"[-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,2})?"

_PREFIXES = {"k": (10**3, 2**10), "m": (10**6, 2**20), "g": (10**9, 2**30), "b": (10**9, 10**9), "t": (10**12, 2**40)}
"""Factors that a letter behind a number may mean, decimal and binary."""

SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
"""Seconds of each unit of durations."""


def _of_thousands(match: re.Match[str], _: str) -> str:
    plain = re.sub(r"[,_' ]", "", match[0])
    if match[0].count(",") == 1 and "." not in match[0]:
        return f"write {plain} without separators, or {match[0].replace(',', '.')} with a decimal point"
    return f"write {plain} without separators"


def _of_whole_thousands(match: re.Match[str], _: str) -> str:
    plain = re.sub(r"[,._' ]", "", match[0])
    return f"write {plain} without separators"


def _of_decimal_comma(match: re.Match[str], _: str) -> str:
    return f"use a decimal point, {match[0].replace('.', '').replace(',', '.')}"


def _of_time(match: re.Match[str], unit: str) -> str:
    number, name = match[1].lstrip("+-"), match[2].removesuffix("ec")
    if unit == "time":
        name = "us" if name == "µs" else name
        return f"times are plain numbers in one unit; write {number}, and set time_unit to {name}"
    if unit == "seconds" and name in SECONDS:
        return f"write {float(number) * SECONDS[name]:g}, in seconds"
    return _of_prefix(match, unit) if name == "m" else f"expected a number without a unit, {number}"


def _of_prefix(match: re.Match[str], _: str) -> str:
    decimal, binary = (float(match[1]) * factor for factor in _PREFIXES[match[2].lower()])
    return "write all digits, " + " or ".join(f"{value:.15g}" for value in dict.fromkeys((decimal, binary)))


def _of_share(match: re.Match[str], _: str) -> str:
    return f"write it as a share, {float(match[1]) / 100:g}"


def _of_integral(match: re.Match[str], _: str) -> str:
    value = float(match[0])
    return f"write {value:.0f}" if value.is_integer() and abs(value) < 1e15 else "expected a whole number such as 4"


_Remedy = Callable[[re.Match[str], str], str]

_BOTH: tuple[tuple[str, _Remedy], ...] = (
    (rf"({_DIGITS})\s*((?:[nuµm]?s)(?:ec)?|m|min|h|d)", _of_time),
    (rf"({_DIGITS})\s*([kKmMgGtTbB])", _of_prefix),
    (rf"({_DIGITS})\s*%", _of_share),
    (rf"({_DIGITS})\s*[a-zA-Z/]+", lambda match, _: f"expected a number without a unit, {match[1]}"),
    (r"[-+0-9.eE]+(?:\s*[;|]\s*[-+0-9.eE]+)+", lambda *_: "separate values with commas"),
    (r"(?i)|none|null|default|auto|unset", lambda *_: "to use the default, leave it out"),
)

_FAULTS_OF_NUMBERS: tuple[tuple[str, _Remedy], ...] = (
    (r"[-+]?[0-9]{1,3}(?:[,_' ][0-9]{3})+(?:\.[0-9]+)?", _of_thousands),
    (r"[-+]?[0-9]+,[0-9]+|[-+]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+", _of_decimal_comma),
    *_BOTH,
)

_FAULTS_OF_COUNTS: tuple[tuple[str, _Remedy], ...] = (
    (r"[+-]?[0-9]{1,3}(?:[,._' ][0-9]{3})+", _of_whole_thousands),
    (r"[+-]?(?:[0-9]{1,18}\.[0-9]{0,18}|[0-9]{1,18}(?:\.[0-9]{0,18})?[eE][+]?[0-9]{1,2})", _of_integral),
    *_BOTH,
)


def _remedy(faults: tuple[tuple[str, _Remedy], ...], text: str, unit: str) -> str | None:
    plain = text.strip()
    for pattern, remedy in faults:
        if match := re.fullmatch(pattern, plain):
            return remedy(match, unit)
    return None


# Sizes in bytes.

SIZE_UNIT = re.compile(r"(?i)(?:[kmgtp](?:i?b?)|b|bytes?|act|acts|activations?)")
"""A word that is the unit of the size before it."""

_SIZE = re.compile(rf"({NUMBER.pattern})\s*([A-Za-z]*)")

_UNITS = {"": 1.0, "b": 1.0, "byte": 1.0, "bytes": 1.0} | {
    f"{prefix}{ending}": float(base**power)
    for power, prefix in enumerate("kmgtp", start=1)
    for ending, base in (("b", 1000), ("ib", 1024), ("i", 1024))
}
"""Bytes of each unit, in small letters."""


def parse_size(text: str, where: str, *, field: str = "", more: str = "") -> float:
    """Return the bytes of a size with or without a unit: ``2GiB`` is 2 * 2**30, ``1.5e9`` is 1.5e9.

    A unit may be in any case and stand behind a blank, as in ``12 gib``. Raises CostError with a remedy for a text that is
    not a size, or may mean two; ``more`` is what else is accepted, for the message.
    """
    match = _SIZE.fullmatch(text.strip())
    # A small b behind a capital letter means bits, as in 400 Gb/s.
    factor = None if match is None or re.fullmatch(r"[KMGTP]i?b", match[2]) else _UNITS.get(match[2].lower())
    if match is None or factor is None:
        remedy = _remedy_of_size(text.strip()) or f"expected bytes or a unit such as 2GiB{more}"
        raise CostError(f"{where}: invalid size '{shortened(text, _SHOWN)}': {remedy}", field=field or where)
    return float(match[1]) * factor


def _remedy_of_size(text: str) -> str | None:
    if match := re.fullmatch(rf"({_DIGITS})\s*([kKmMgGtT])", text):
        letter = match[2].upper()
        return f"write {match[1]}{letter}iB (binary) or {match[1]}{letter}B (decimal)"
    if match := re.fullmatch(rf"({_DIGITS})\s*([KMGT]i?)b", text):
        return f"a small b means bits; write {match[1]}{match[2]}B"
    if match := re.fullmatch(r"([-+]?[0-9]{1,3}(?:\.[0-9]{3})*),([0-9]+)(\s*[A-Za-z]*)", text):
        return f"use a decimal point, {match[1].replace('.', '')}.{match[2]}{match[3].strip()}"
    if re.fullmatch(rf"({_DIGITS})\s*%", text):
        return "a share is not a size; write it in bytes or with a unit such as 60GiB"
    if re.fullmatch(r"(?i)|none|null|default|auto|unset|unlimited|max", text):
        return "to use the default, leave it out"
    return None
