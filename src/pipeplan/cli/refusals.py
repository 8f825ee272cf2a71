"""Refused command lines, in the words of pipeplan's own errors: what is wrong, the value, and the remedy.

The argument parser has a class for each way in which a line is refused; here each has its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from cyclopts import (
    App,
    ArgumentOrderError,
    CoercionError,
    CombinedShortOptionError,
    CycloptsError,
    MissingArgumentError,
    MixedArgumentError,
    RepeatArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from pipeplan.foundation.errors import InputError, PipeplanError, UnknownNameError, nearest

_NEGATIVE = re.compile(r"-\.?[0-9]\S*")
_LONG_DASH = re.compile(r"[‐-―−]+(?=[A-Za-z])")
"""Dashes that word processors and web pages put in place of hyphens."""


def refused(error: Exception) -> Exception:
    """Return an error of the argument parser as one of pipeplan's; others stay."""
    if not isinstance(error, CycloptsError):
        return error
    command = " ".join(error.command_chain or ())
    sentence = next((words(error, command) for kind, words in _SENTENCES if isinstance(error, kind)), None)
    return InputError(sentence or " ".join(str(error).split()))


def _of_unknown_option(error: UnknownOptionError, command: str) -> str:
    option = (error.token.keyword or error.token.value).partition("=")[0]
    if _NEGATIVE.fullmatch(option):
        return f"unexpected value '{option}': no option takes a negative number"
    if name := _only_in_files(option, error):
        return f"{option} is set in a config file: write '{name}: VALUE' in FILE, and pass -c FILE"
    if " " in option:
        return f"unknown option '{option}': write the option and its value as two words, without quotes"
    word = option.lstrip("-")
    if any(argument.name == word.upper() for argument in error.argument_collection):
        return f"unknown option '{option}': {word.upper()} is an argument, write its value without '{option}'"
    names = [name for argument in error.argument_collection for name in argument.names if name.startswith("-")]
    return unknown_option(option, names, command)


def unknown_option(option: str, names: Iterable[str], command: str) -> str:
    """Return the sentence of an option that a command does not have, with the nearest of its ``names``."""
    if near := _nearest(option, names):
        return f"unknown option '{option}'; did you mean '{near}'?"
    return f"unknown option '{option}': 'pipeplan {command} --help-all' lists its options"


def _nearest(option: str, names: Iterable[str]) -> str | None:
    """Return the option that a misspelt one is nearest to; ``-ranks`` and ``--memory_limit`` are near their own."""
    word = option.lstrip("-").replace("_", "-")
    bare = {name.lstrip("-"): name for name in reversed(list(names))}
    return next((bare[name] for name in nearest(word, bare, cutoff=0.65)), None) if len(word) > 1 else None


def _only_in_files(option: str, error: UnknownOptionError) -> str | None:
    """Return the setting of an option that only config files have, if the command reads one."""
    if not any("--config" in argument.names for argument in error.argument_collection):
        return None
    from pipeplan.costs import SETTINGS  # loaded with the command

    return next((setting.name for setting in SETTINGS.values() if option in setting.options), None)


def _of_unexpected(error: UnusedCliTokensError, command: str) -> str:
    words = error.unused_tokens or ()
    word = words[0] if words else ""
    from pipeplan.costs import SIZE_UNIT  # loaded with the command

    if SIZE_UNIT.fullmatch(word):
        return f"unexpected argument '{word}': write a unit without a blank, as in 12{word}"
    return f"unexpected argument '{' '.join(words)}': {_lists(command, 'what the command takes')}"


def _of_missing(error: MissingArgumentError, command: str) -> str | None:
    argument = error.argument
    if argument is None:
        return None
    if error.keyword is None and not argument.name.startswith("-"):
        return f"{command} needs {argument.name}: {_ends(command)}"
    option = error.keyword or argument.name
    if error.keyword is None:
        return f"{command} needs {option}: {_ends(command)}"
    return f"{option} needs a value: {_values(argument.names, error.target) or _ends(command)}"


def _values(names: Iterable[str], function: Any) -> str | None:
    """Return what values an option of a command takes."""
    from pipeplan.costs import KINDS

    settings: Mapping[str, Any] = getattr(function, "settings", {})
    setting = next((setting for setting in settings.values() if not {*names}.isdisjoint(setting.options)), None)
    if setting is None:
        return None
    return f"one of {', '.join(setting.choices)}" if setting.choices else KINDS[setting.kind].values


def _of_value(error: CoercionError, _: str) -> str | None:
    if error.token is None:
        return None
    option = error.token.keyword or ("" if error.argument is None else error.argument.name)
    if error.target_type is bool:
        return f"{option} takes no value, but got '{error.token.value}': write {option} alone"
    choices = [str(choice) for choice in get_args(error.target_type)]
    expected = f": expected {', '.join(choices)}" if choices else ""
    return f"invalid value '{error.token.value}' of {option}{expected}"


def _of_repetition(error: RepeatArgumentError, _: str) -> str:
    value = f", the second time as '{error.token.value}'" if error.token.value else ""
    return f"{error.token.keyword} is given twice{value}: keep one of them"


def _of_both(error: MixedArgumentError | ArgumentOrderError, _: str) -> str:
    name = "" if error.argument is None else error.argument.name
    return f"{name} is given as an option and as an argument: keep one of them"


def _of_combination(_: CombinedShortOptionError, __: str) -> str:
    return "short options with values cannot be combined: write each with its own dash, as in -p 4 -m 8"


_SENTENCES: tuple[tuple[type[CycloptsError], Callable[[Any, str], str | None]], ...] = (
    (UnknownOptionError, _of_unknown_option),
    (UnusedCliTokensError, _of_unexpected),
    (MissingArgumentError, _of_missing),
    (RepeatArgumentError, _of_repetition),
    (CoercionError, _of_value),
    (MixedArgumentError, _of_both),
    (ArgumentOrderError, _of_both),
    (CombinedShortOptionError, _of_combination),
)
"""Sentence of each class of errors, from the error and the command; None for the parser's own."""


def _lists(command: str, what: str) -> str:
    return f"'{' '.join(('pipeplan help', *command.split()))}' lists {what}"


def _ends(command: str) -> str:
    return f"'pipeplan help {command}' ends with an example"


# Slips that the parser would take for something else


def with_hyphens(words: Sequence[str]) -> list[str]:
    """Join negative values to their option, and refuse words that begin with a dash that is not a hyphen.

    The parser takes ``-5GiB`` for an option; joined, the setting's own check refuses it.
    """
    joined: list[str] = []
    for word in words:
        if _LONG_DASH.match(word):
            hyphens = "-" if len(word) == 2 else "--"
            raise InputError(f"'{word}' begins with a long dash: write {_LONG_DASH.sub(hyphens, word, count=1)}")
        previous = joined[-1] if joined else ""
        if _NEGATIVE.fullmatch(word) and not _is_number(word) and re.fullmatch(r"--?[a-z][^=]*", previous):
            joined[-1] = f"{previous}={word}"
        else:
            joined.append(word)
    return joined


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def unknown_command(words: Sequence[str], app: App) -> PipeplanError:
    """Return the error of a line whose first word is not a command."""
    first = words[0]
    if first.startswith("-"):
        if near := _nearest(first, ("--version", "--help", "--help-all", "--install-completion")):
            return InputError(f"unknown option '{first}'; did you mean '{near}'?")
        return InputError(
            f"'{first}' stands before a command: name one first, as in 'pipeplan compare {' '.join(words)}'"
        )
    from pipeplan.answers import file_of
    from pipeplan.strategies import STRATEGIES

    error = UnknownNameError("command", first, [name for name in app if not name.startswith("-")])
    if "did you mean" not in str(error) and (STRATEGIES.find(first) is not None or file_of(first) is not None):
        return InputError(f"'{first}' is not a command: write 'pipeplan simulate {' '.join(words)}'")
    return error


def with_decimal_points(error: Exception, words: Sequence[str]) -> Exception:
    """Add to the error of a list that commas separate values, if one of its words looks like ``0,4``."""
    if not isinstance(error, PipeplanError) or not error.field or "decimal point" in str(error):
        return error
    from pipeplan.costs import SETTINGS

    setting = SETTINGS.get(error.field)
    values = () if setting is None else _values_of(setting.options, words)
    if value := next((value for value in values if re.fullmatch(r"[0-9]+,[0-9]+", value)), None):
        error.args = (f"{error}; commas separate values, so write a decimal point: {value.replace(',', '.')}",)
    return error


def _values_of(options: Sequence[str], words: Sequence[str]) -> Iterable[str]:
    """Yield the words behind an option, up to the next one."""
    inside = False
    for word in words:
        if word.startswith("-"):
            option, _, value = word.partition("=")
            inside = option in options
            if inside and value:
                yield value
        elif inside:
            yield word
