"""Wrong values planted in a plan's flags and code: what compares them with the plan must report every one."""

import re
from collections.abc import Iterator, Sequence


def planted_flags(words: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each flag with the words in which it is wrong: a number is larger; any other flag is left out."""
    starts = [place for place, word in enumerate(words) if word.startswith("--")]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        flag, *values = words[start:end]
        if len(values) == 1 and re.fullmatch(r"\d+", values[0]):
            yield flag, (*words[: start + 1], str(int(values[0]) + 1), *words[end:])
        elif len(values) == 1 and re.fullmatch(r"[\d.]+(e-?\d+)?", values[0]):
            yield flag, (*words[: start + 1], str(2 * float(values[0])), *words[end:])
        else:
            yield flag, (*words[:start], *words[end:])


def planted_code(code: str) -> Iterator[tuple[str, str]]:
    """Each assignment to a field, and each keyword of a call, with the code in which its value is wrong."""
    for match in re.finditer(r"^ *((?:cfg\.[\w.]+ = )+|\w+=)(.*[^(,])(,?)$", code, re.MULTILINE):
        yield match[1].strip(" ="), f"{code[: match.start(2)]}{_other(match[2])}{code[match.end(2) :]}"


def _other(value: str) -> str:
    if re.fullmatch(r"\d+", value):
        return str(int(value) + 1)
    if value in ("True", "False"):
        return str(value == "False")
    if value.startswith("["):
        return f"({value})[1:]"
    if value.startswith('"'):
        return f"{value} * 2"
    return "1" if value == "None" else f"({value}) * 2"
