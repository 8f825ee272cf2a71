"""Options of commands: parsers of their words, the ``command`` decorator, and the checked request that commands get."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

from cyclopts import Group, Parameter, Token
from cyclopts import convert as convert_as

from pipeplan import answers
from pipeplan.costs import (
    GROUPS,
    SETTINGS,
    Config,
    Options,
    Setting,
    SettingKind,
    Settings,
    ShellSettings,
    load_factors,
    load_layers,
    load_lengths,
    missing_in,
    option,
    options_of,
    parse_size,
    table_of,
)
from pipeplan.drawing import LookOptions
from pipeplan.formats import STANDARD_INPUT
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.foundation.files import path_of, require_apart, require_writable
from pipeplan.foundation.names import ScheduleName as BuiltInSchedule
from pipeplan.model import shortened

if TYPE_CHECKING:
    from pipeplan.drawing import Look

    ScheduleName = str
else:
    ScheduleName: Any = Annotated[BuiltInSchedule | str, Parameter(show_choices=False)]
    """Schedule names that the shell completes; any other text may be the name of a plugin or the path of a file."""

_GROUPS = {group: Group(title, sort_key=place) for place, (group, title) in enumerate(GROUPS.items())}
"""Panels of the help."""

OUTPUT = _GROUPS["output"]
"""Panel of input and output, below the others."""


def _words(tokens: Sequence[Token]) -> list[str]:
    """Return the words of an option, separated by spaces or commas, or both in quotes (``"1, 2"``); ``-f=1`` is ``-f 1``."""
    texts = (token.value.removeprefix("=") for token in tokens)
    words = (word.strip() if "," in text else word for text in texts for word in text.split(","))
    return [word for word in words if word]


# inf and nan parse as numbers, so that the range of the setting refuses them and says why.
_NUMBER = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf|nan)")


def _number(token: Token, word: str) -> float:
    if not _NUMBER.fullmatch(word):
        raise CostError(f"{token.keyword}: invalid number '{_short(word)}'")
    return float(word)


def _to_numbers(_: Any, tokens: Sequence[Token]) -> tuple[float, ...]:
    numbers = tuple(_number(tokens[0], word) for word in _words(tokens))
    if not numbers:
        raise CostError(f"{tokens[0].keyword} needs a number, or a list of numbers")
    return numbers


def _size(token: Token, word: str) -> float:
    return parse_size(word, token.keyword or "a size")


def _to_factors(_: Any, tokens: Sequence[Token]) -> tuple[float | str, ...]:
    """Return numbers, or the name of a file."""
    words = _words(tokens)
    if len(words) == 1 and not _NUMBER.fullmatch(words[0]):
        return (str(_to_path(_, tokens)),)
    return _to_numbers(_, tokens)


def _to_sizes(_: Any, tokens: Sequence[Token]) -> tuple[float, ...]:
    sizes = tuple(_size(tokens[0], word) for word in _words(tokens))
    if not sizes:
        raise CostError(f"{tokens[0].keyword} needs a number of bytes, or one per stage or rank")
    return sizes


def _to_size(_: Any, tokens: Sequence[Token]) -> float:
    return _size(tokens[0], tokens[0].value.removeprefix("="))


def _to_number(_: Any, tokens: Sequence[Token]) -> float:
    return _number(tokens[0], tokens[0].value.removeprefix("="))


def _count(token: Token, word: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", word):
        digits = re.fullmatch(r"[+-]?[0-9]+", word)
        if digits:
            raise InputError(f"{token.keyword}: an integer of {len(word):,} digits is too large")
        raise InputError(f"{token.keyword}: invalid integer '{_short(word)}'")
    return int(word)


def _short(word: str) -> str:
    """Return a word for a message; ``-`` is replaced by the name of a file at this point."""
    return "-" if word == STANDARD_INPUT else shortened(word, 60)


def _to_count(_: Any, tokens: Sequence[Token]) -> int:
    return _count(tokens[0], tokens[0].value.removeprefix("="))


def to_counts(_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Return integers separated by spaces or commas. Raises InputError for anything else."""
    return tuple(_count(tokens[0], word) for word in _to_words(_, tokens))


def _to_stage_layers(_: Any, tokens: Sequence[Token]) -> tuple[int | str, ...]:
    """Return integers separated by spaces or commas, or any other words as one text: a layout."""
    words = _to_words(_, tokens)
    if any(re.fullmatch(r"[+-]?[0-9]+", word) for word in words):
        return to_counts(_, tokens)
    return (" ".join(token.value.removeprefix("=") for token in tokens),)


def _to_words(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    words = tuple(_words(tokens))
    if not words:
        raise CostError(f"{tokens[0].keyword} needs a value")
    return words


def _to_text(_: Any, tokens: Sequence[Token]) -> str:
    return tokens[0].value


def _to_choice_of(setting: Setting) -> Callable[..., Any]:
    """Return the parser of a choice, which may be written in any case."""

    def to_choice(held: Any, tokens: Sequence[Token]) -> Any:
        return convert_as(held, [token.evolve(value=setting.spelled(token.value)) for token in tokens])

    return to_choice


def _to_path(_: Any, tokens: Sequence[Token]) -> Path:
    return path_of(tokens[0].value, tokens[0].keyword or "the file")


def _to_paths(_: Any, tokens: Sequence[Token]) -> tuple[Path, ...]:
    return tuple(_to_path(_, [token]) for token in tokens)


def _to_stages(_: Any, tokens: Sequence[Token]) -> str:
    return ",".join(_to_words(_, tokens))


_TYPES: dict[SettingKind, tuple[Any, Callable[..., Any] | None, bool]] = {
    "count": (int, _to_count, False),
    "number": (float, _to_number, False),
    "per_stage": (tuple[float, ...], _to_numbers, True),
    "choice": (str, None, False),
    "name": (str, _to_text, False),
    "text": (str, _to_text, False),
    "flag": (bool, None, False),
    "limit": (tuple[str, ...], _to_words, True),
    "stages": (tuple[str, ...] | str, _to_stages, True),
    "layers": (Path, _to_path, False),
    "layout": (tuple[int, ...], to_counts, True),
    "stage_layers": (tuple[int | str, ...], _to_stage_layers, True),
    "per_microbatch": (tuple[float | str, ...], _to_factors, True),
    "lengths": (Path, _to_path, False),
    "size": (str, _to_text, False),
    "duration": (str, _to_text, False),
    "pairs": (tuple[str, ...], None, True),
    "names": (tuple[str, ...], None, False),
    "model": (str, _to_text, False),
    "object": (str, _to_text, False),
    "schedules": (tuple[ScheduleName, ...], None, False),
    "file": (Path, _to_path, False),
    "files": (tuple[Path, ...], _to_paths, False),
}
"""Type of each kind of option, the parser of its words, and whether it takes several words."""

_BY_TYPE: dict[Any, Callable[..., Any]] = {
    int: _to_count,
    float: _to_number,
    Path: _to_path,
    tuple[Path, ...]: _to_paths,
    tuple[int, ...]: to_counts,
    tuple[float, ...]: _to_numbers,
}


def from_words(held: Any, tokens: Sequence[Token]) -> Any:
    """Parse the words of an option or argument that is not declared as a :class:`Setting`.

    By default cyclopts would read ``1.5`` as the integer 2, ``1_0`` as 10, and ``x.csv/`` as the file ``x.csv``.
    """
    plain = [part for part in get_args(held) if part is not NoneType] if isinstance(held, UnionType) else [held]
    convert = _BY_TYPE.get(plain[0]) if len(plain) == 1 else None
    return convert_as(held, tokens) if convert is None else convert(held, tokens)


_NAMED = ("choice", "name")
"""Kinds of options whose choices help shows and the shell completes."""


def _annotation(setting: Setting) -> Any:
    """Return the annotation of a setting's option, which is None if the command line does not have it."""
    held = _TYPES[setting.kind][0]
    if setting.kind in _NAMED:
        held = Literal[setting.choices] if setting.kind == "choice" else Literal[setting.choices] | str
    return Annotated[held | None, parameter_of(setting)]


def parameter_of(setting: Setting) -> Parameter:
    """Return the option of a setting in the shell; it refuses invalid values before any work."""
    _, convert, many = _TYPES[setting.kind]
    if setting.kind == "choice":
        convert = _to_choice_of(setting)
    if setting.in_bytes:
        convert = _to_sizes if many else _to_size
    # None would take the place of the app's own converter.
    by_type: dict[str, Any] = {} if convert is None else {"converter": _checked(setting, convert)}
    return Parameter(
        name=setting.options,
        help=setting.full_help,
        group=_GROUPS[setting.group],
        consume_multiple=many,
        show_default=False,
        show_choices=setting.kind in _NAMED,
        negative_iterable=(),
        **by_type,
    )


def _checked(setting: Setting, convert: Callable[..., Any]) -> Callable[..., Any]:
    def converted(held: Any, tokens: Sequence[Token]) -> Any:
        value = convert(held, tokens)
        value_for_all = _number_for_all(setting, value)
        if setting.kind not in _READERS or not isinstance(value_for_all, str | Path):
            setting.check(value_for_all)
        return value

    return converted


def _number_for_all(setting: Setting, value: Any) -> Any:
    """Return a list of one number or text as that; cyclopts, which checks types, needs a list until here."""
    if not isinstance(value, tuple) or len(value) != 1:
        return value
    text = setting.kind in ("stage_layers", "per_microbatch") and isinstance(value[0], str)
    return value[0] if text or setting.kind in ("per_stage", "limit") else value


@dataclass(frozen=True)
class LineSettings:
    """Settings of the command line, with ``config`` among them, and the files that they are read from."""

    values: Mapping[str, Any]
    files: tuple[Path, ...]

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LineSettings:
        """Return the settings of these options. Raises InputError for an unreadable or invalid file."""
        values, files = dict(options), []
        for name, value in options.items():
            reader = _READERS.get(SETTINGS[name].kind) if name in SETTINGS else None
            is_file = isinstance(value, str | Path)
            if reader is not None and is_file:
                values[name] = reader(Path(value))
            if is_file and (reader is not None or name == "config"):
                files.append(Path(value))
        return cls(values, tuple(files))


_READERS: dict[SettingKind, Callable[[Path], Any]] = {
    "layers": load_layers,
    "lengths": load_lengths,
    "per_microbatch": load_factors,
}
"""Readers of settings that are files in the shell, or may be."""


@dataclass(frozen=True, kw_only=True)
class PictureOptions(LookOptions):
    """Theme and size of pictures, and whether to draw any."""

    no_visualization: bool = option(False, kind="flag", group="output", help="Draw nothing except --output files.")


def output_option(description: str) -> Any:
    """Declare ``--output``, the files that the answer is written to, in a record of options."""
    return option((), kind="files", title="Output", group="output", flags=("-o",), help=description)


@dataclass(frozen=True, kw_only=True)
class OutputOptions(PictureOptions):
    """Files that the answer is written to."""

    output: tuple[Path, ...] = output_option(
        "File to write; repeatable. The suffix selects the format, such as .png, .svg, .html, .csv or .json; an unknown "
        "suffix lists all."
    )


@dataclass(frozen=True, kw_only=True)
class SourceOptions(Options):
    """Traces to read instead of measuring, and the file to write."""

    source: Path | None = option(
        kind="file",
        group="training",
        flags=("--from",),
        help="Traces of a run to read costs from instead of measuring: a folder, or a file of `pipeplan run`.",
    )
    output: Path | None = option(kind="file", group="output", flags=("-o",), help="File to write, .yaml or .json.")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The file to write, if any."""
        return () if self.output is None else (self.output,)


def command(function: Callable[..., int]) -> Callable[..., int]:
    """Make a function a command: a keyword that is a record of options becomes one option for each field.

    ``LineSettings`` become the options of all settings. Every command takes ``--debug``, and one with ``json`` takes
    ``--json``.
    """
    hints = get_type_hints(function, include_extras=True)
    records: dict[str, type[Options]] = {}
    taken: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if hint is LineSettings:
            records[parameter.name] = ShellSettings
        elif isinstance(hint, type) and issubclass(hint, Options):
            records[parameter.name] = hint
        else:
            taken.append(parameter.replace(annotation=_JSON if parameter.name == "json" else hint))
    options: dict[str, Setting] = {}
    for record in records.values():
        options.update(table_of(record))
    taken += [_keyword(name, _annotation(setting)) for name, setting in options.items()]
    taken.append(_keyword("debug", _DEBUG, default=False))

    def run(*words: Any, debug: bool = False, **keywords: Any) -> int:
        values = {}
        for name, setting in options.items():
            value = keywords.pop(name, None)
            if value is not None:
                values[name] = _number_for_all(setting, value)
        for name, record in records.items():
            of_record = {option: values[option] for option in table_of(record) if option in values}
            if hints[name] is LineSettings:
                keywords[name] = LineSettings.of(of_record)
                continue
            if missing := missing_in(record, of_record):
                needed = ", ".join(f"--{option.replace('_', '-')}" for option in missing)
                raise InputError(
                    f"a {function.__name__} needs {needed}: 'pipeplan help {function.__name__}' ends with an example",
                    field=missing[0],
                )
            keywords[name] = options_of(record, of_record)
        return function(*words, **keywords)

    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    run.__signature__ = inspect.Signature(sorted(taken, key=lambda parameter: parameter.kind))  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return run


def _keyword(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _switch(text: str) -> Any:
    return Annotated[bool, Parameter(help=text, group=OUTPUT, show_default=False, negative=())]


_JSON = _switch("Print one JSON object on stdout, and nothing else.")
_DEBUG = _switch("Print the traceback of an error.")


@dataclass(frozen=True, slots=True)
class Request:
    """Validated request of a command.

    Attributes
    ----------
    names
        Schedules, by name or file.
    settings
        Shape and costs.
    outputs
        Files to write: writable, distinct, and none of them an input.
    look
        Theme and size of pictures.
    pictures
        Whether pictures are drawn, in the terminal and in files that the config file names.
    """

    names: tuple[str, ...]
    settings: Settings
    outputs: tuple[Path, ...] = ()
    look: Look = field(default_factory=dict)  # type: ignore[assignment]
    pictures: bool = True

    @property
    def name(self) -> str:
        """The schedule of a command that takes one."""
        return self.names[0] if self.names else answers.DEFAULT_SCHEDULE


def request(
    names: tuple[str, ...],
    line: LineSettings,
    output: OutputOptions | None = None,
    *,
    draws: bool = False,
    reads: Iterable[Path] = (),
    writes: Iterable[Path] = (),
) -> Request:
    """Read the config file, apply the options, and check all inputs and outputs before any work."""
    config, settings = answers.configured(line.values)
    names = names or (() if config.schedule is None else (config.schedule,))
    result = Request(names, settings)
    if output is not None:
        pictures = not (output.no_visualization or config.no_visualization)
        outputs = _outputs(output, config, result.name if draws else None, pictures=pictures)
        result = replace(result, outputs=outputs, look=output.look, pictures=pictures)
    writes = list(writes)
    for path in writes:
        require_writable(path)
    files = [path for path in map(answers.file_of, names) if path is not None]
    named = [path for output in result.outputs for path in answers.named_beside(output)]
    require_apart([*result.outputs, *named, *writes], [*reads, *files, *line.files])
    return result


def _outputs(options: OutputOptions, config: Config, drawn: str | None, *, pictures: bool) -> tuple[Path, ...]:
    """Return the files to write, or a picture of the schedule ``drawn`` if there are none.

    Without pictures, the pictures that only the config file names are left out.
    """
    outputs = options.output or tuple(path_of(name, "the output", field="output") for name in config.output)
    answers.require_outputs(outputs)
    if not pictures and not options.output:
        return tuple(path for path in outputs if not answers.is_picture(path))
    if outputs or drawn is None:
        return outputs
    picture = Path(answers.picture_name(Path(drawn).stem))
    answers.require_outputs([picture])
    return (picture,)
