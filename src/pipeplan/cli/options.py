"""Options of commands: the ``command`` decorator, and the checked request that commands get."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from cyclopts import Group, Parameter, Token
from cyclopts import convert as convert_as

from pipeplan import answers, costs
from pipeplan.costs import (
    GROUPS,
    KINDS,
    SETTINGS,
    Config,
    OptionKind,
    Options,
    Setting,
    SettingKind,
    Settings,
    Shell,
    ShellSettings,
    missing_in,
    option,
    options_of,
    table_of,
)
from pipeplan.drawing import LookOptions
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.files import path_of, require_apart, require_writable
from pipeplan.foundation.names import ScheduleName as BuiltInSchedule

if TYPE_CHECKING:
    from pipeplan.drawing import Look

ScheduleName: TypeAlias = Annotated[BuiltInSchedule | str, Parameter(show_choices=False)]
"""Schedule names that the shell completes; any other text may be the name of a plugin or the path of a file."""

_GROUPS = {group: Group(title, sort_key=place) for place, (group, title) in enumerate(GROUPS.items())}
"""Panels of the help."""

OUTPUT = _GROUPS["output"]
"""Panel of input and output, below the others."""


def from_words(held: Any, tokens: Sequence[Token]) -> Any:
    """Parse the words of an option or argument that is not declared as a :class:`Setting`.

    By default cyclopts would read ``1.5`` as the integer 2, ``1_0`` as 10, and ``x.csv/`` as the file ``x.csv``.
    """
    plain = [part for part in get_args(held) if part is not NoneType] if isinstance(held, UnionType) else [held]
    kind = _BY_TYPE.get(plain[0]) if len(plain) == 1 else None
    return convert_as(held, tokens) if kind is None else _parsed(KINDS[kind], tokens)


_BY_TYPE: dict[Any, SettingKind] = {
    int: "count",
    float: "number",
    Path: "file",
    tuple[Path, ...]: "files",
    tuple[int, ...]: "layout",
    tuple[float, ...]: "per_stage",
}


def _parsed(kind: OptionKind, tokens: Sequence[Token]) -> Any:
    assert kind.parse is not None
    return kind.parse(tokens[0].keyword or "", [token.value for token in tokens])


def _annotation(setting: Setting) -> Any:
    """Return the annotation of a setting's option, which is None if the command line does not have it."""
    held = KINDS[setting.kind].held
    if setting.kind == "choice":
        held = Literal[setting.choices]
    elif setting.kind == "name":
        held = Literal[setting.choices] | str
    elif setting.kind == "schedules":
        held = tuple[ScheduleName, ...]
    return Annotated[held | None, _parameter(setting)]


def _parameter(setting: Setting) -> Parameter:
    """Return the option of a setting in the shell; it refuses invalid values before any work."""
    kind = KINDS[setting.kind]
    if setting.kind in ("number", "per_stage", "pair_times"):
        assert kind.parse is not None
        kind = replace(kind, parse=partial(kind.parse, unit=setting.unit))
    # Without a parser of its own a kind is parsed by the app's converter, in whose place None would come.
    by_kind: dict[str, Any] = {}
    if setting.kind == "choice" or kind.parse is not None:
        by_kind["converter"] = partial(_converted, setting, kind)
    return Parameter(
        name=setting.options,
        help=setting.full_help,
        group=_GROUPS[setting.group],
        consume_multiple=kind.several,
        show_default=False,
        show_choices=setting.kind in ("choice", "name"),
        negative_iterable=(),
        **by_kind,
    )


def _converted(setting: Setting, kind: OptionKind, _: Any, tokens: Sequence[Token]) -> Any:
    """Return the checked value of an option's words. A name of a file is checked when it is read."""
    value = setting.spelled(tokens[0].value) if setting.kind == "choice" else _parsed(kind, tokens)  # in any case
    single = _single(setting, value)
    if not kind.reader or not isinstance(single, str | Path):
        costs.check_value(setting, single)
    return value


def _single(setting: Setting, value: Any) -> Any:
    """Return a list of one number or text as that; cyclopts, which checks types, needs a list until here."""
    if not isinstance(value, tuple) or len(value) != 1:
        return value
    text = setting.kind in ("stage_layers", "per_microbatch") and isinstance(value[0], str)
    return value[0] if text or setting.kind in ("per_stage", "pair_times", "limit") else value


@dataclass(frozen=True)
class LineSettings:
    """Settings of the command line, with ``config`` among them, and the files that they are read from."""

    values: Mapping[str, Any]
    files: tuple[Path, ...]

    left_out: ClassVar[tuple[Shell, ...]] = ("none",)
    """Settings without an option, by their attribute ``shell``."""

    @classmethod
    def table(cls) -> dict[str, Setting]:
        """Return the settings that have an option."""
        return {name: setting for name, setting in table_of(ShellSettings).items() if setting.shell not in cls.left_out}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LineSettings:
        """Return the settings of these options. Raises InputError for an unreadable or invalid file."""
        values, files = dict(options), []
        for name, value in options.items():
            if isinstance(value, str | Path):
                reader = KINDS[SETTINGS[name].kind].reader if name in SETTINGS else ""
                if reader:
                    values[name] = getattr(costs, reader)(Path(value))
                if reader or name == "config":
                    files.append(Path(value))
        return cls(values, tuple(files))


class SearchSettings(LineSettings):
    """Settings of the command line of a search, which leaves out those of given schedules."""

    left_out = ("none", "schedules")


@dataclass(frozen=True, kw_only=True)
class PictureOptions(LookOptions):
    """Theme and size of pictures, and whether to draw any."""

    no_visualization: bool = option(
        False, kind="flag", group="output", usual=False, help="Draw nothing except --output files."
    )


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
    signature = inspect.signature(function, eval_str=True)
    records = {name: part.annotation for name, part in signature.parameters.items() if _is_record(part.annotation)}
    settings = {name: setting for record in records.values() for name, setting in _table(record).items()}

    def run(*words: Any, debug: bool = False, **keywords: Any) -> int:
        options = {name: keywords.pop(name, None) for name in settings}
        values = {name: _single(settings[name], value) for name, value in options.items() if value is not None}
        for name, record in records.items():
            own = {option: values[option] for option in _table(record) if option in values}
            keywords[name] = record.of(own) if issubclass(record, LineSettings) else _checked(record, own, function)
        return function(*words, **keywords)

    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    run.__signature__ = _signature(signature, settings)  # type: ignore[attr-defined]
    run.__annotations__ = {name: part.annotation for name, part in inspect.signature(run).parameters.items()}
    run.settings = settings  # type: ignore[attr-defined]
    return run


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Options | LineSettings)


def _table(record: type[Options | LineSettings]) -> Mapping[str, Setting]:
    """Return the options of a record that the shell has."""
    if issubclass(record, LineSettings):
        return record.table()
    return {name: setting for name, setting in table_of(record).items() if setting.shell != "none"}


def _checked(record: type[Options], values: Mapping[str, Any], function: Callable[..., int]) -> Options:
    if missing := missing_in(record, values):
        needed = ", ".join(f"--{option.replace('_', '-')}" for option in missing)
        name = function.__name__
        raise InputError(f"a {name} needs {needed}: 'pipeplan help {name}' ends with an example", field=missing[0])
    return options_of(record, values)


def _signature(signature: inspect.Signature, settings: Mapping[str, Setting]) -> inspect.Signature:
    """Return the signature that cyclopts reads: the function's, with an option for each setting in place of the records."""
    own = [part for part in signature.parameters.values() if not _is_record(part.annotation)]
    parts = [part.replace(annotation=_JSON) if part.name == "json" else part for part in own]
    parts += [_keyword(name, _annotation(setting)) for name, setting in settings.items()]
    parts.append(_keyword("debug", _DEBUG, default=False))
    return inspect.Signature(sorted(parts, key=lambda part: part.kind))


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
