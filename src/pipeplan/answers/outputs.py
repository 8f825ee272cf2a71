"""Answers to files: the table of all formats, of which a file's suffix selects one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.costs import Settings
from pipeplan.formats import Content, Format, TimelineContent, TrainerSettings, Training, formats, in_order
from pipeplan.foundation.documents import ENDINGS
from pipeplan.foundation.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.files import Written, file_name, is_stream, replacing, require_writable, write_text

if TYPE_CHECKING:
    from pipeplan.drawing import Look
    from pipeplan.foundation.registry import Registry

Contents = Mapping[Content, Callable[[Format], Any]]
"""Contents of an answer that can be written, each made when its format is known."""

_WHOLE: tuple[Content, ...] = (
    "record",
    "timeline",
    "schedule",
    "settings",
    "costs",
    "plan picture",
    "report",
    "pictures",
    "front picture",
)
"""Contents of a file in order of preference: the first one that its format supports is written."""

_EXPORTED: tuple[Content, ...] = ("schedule", "settings", "timeline", "costs")
"""Contents of an export in order of preference: a schedule; times or costs only in formats made for them."""


def all_formats() -> Mapping[str, Format]:
    """Return all formats by name: pictures first, then those of ``formats`` and ``trainers``."""
    return _joined(lambda registry: registry)


def built_in_formats() -> Mapping[str, Format]:
    """Return the formats that come with pipeplan."""
    return _joined(lambda registry: registry.built_in)


def known_formats() -> Mapping[str, Format]:
    """Return the formats that are known without loading plugins."""
    return _joined(lambda registry: registry.known)


def _joined(part: Callable[[Registry[Any]], Mapping[str, Any]]) -> Mapping[str, Format]:
    """Return pictures, and the formats in a part of the registries of formats and of trainers."""
    from pipeplan.answers.pictures import PICTURES
    from pipeplan.trainers import TRAINERS

    of_trainers = (entry for trainer in part(TRAINERS).values() for entry in trainer.formats)
    declared = in_order((*part(formats()).values(), *of_trainers))
    pictures = {entry.name: entry for entry in PICTURES}
    return pictures | {name: entry for name, entry in declared.items() if name not in pictures}


def export_formats(among: Mapping[str, Format] | None = None) -> Mapping[str, Format]:
    """Return the formats of ``export``, of all or ``among`` some: those of a schedule, a timeline or costs."""
    return {name: entry for name, entry in (all_formats() if among is None else among).items() if _is_exported(entry)}


def _is_exported(entry: Format) -> bool:
    return not entry.writers.keys().isdisjoint(_EXPORTED)


def export_format(to: str) -> Format:
    """Return the format of ``export`` with this name, or a trainer's first one. Raises UnknownNameError for another name."""
    entry = _named(to, known_formats()) or _named(to, all_formats())
    if entry is None:
        from pipeplan.trainers import TRAINERS  # loads what only an export for a trainer needs

        trainer = TRAINERS.find(to)
        entry = trainer.formats[0] if trainer is not None and trainer.formats else None
    if entry is None or not _is_exported(entry):
        raise UnknownNameError("format", to, export_formats(), field="to")
    return entry


def _named(name: str, among: Mapping[str, Format]) -> Format | None:
    """Return the format that a name means in any case; None if there is none."""
    return next((entry for known, entry in among.items() if known.lower() == name.lower()), None)


def require_own_ending(to: str, path: Path) -> None:
    """Raise InputError if a file's ending belongs to another format than ``to``, or to a language that it is not written in.

    Formats of one language share its last suffix: ``.csv`` is right for ``.comms.csv``, but not the reverse.
    """
    chosen, name = export_format(to), path.name.lower()
    if is_stream(path) or (path.suffix.lower() == chosen.suffix and len(path.suffixes) == 1):
        return
    entries = [entry for entry in all_formats().values() if entry.writers]
    languages = {*ENDINGS, *(entry.suffix for entry in entries)}
    # The longest ending, so that that of a format goes before that of its language.
    named = max(filter(name.endswith, languages.union(entry.ending for entry in entries)), key=len, default="")
    if not chosen.ending.endswith(named):
        right = path.with_name(path.name[: -len(named)] + chosen.ending)
        raise InputError(f"{to} is not written to a {named} file: write it to {right}", field="output")


def output_endings(among: Mapping[str, Format] | None = None) -> tuple[str, ...]:
    """Return the suffixes of writable files, of all or ``among`` some formats, in the order of the formats."""
    entries = (all_formats() if among is None else among).values()
    return tuple(dict.fromkeys(entry.ending for entry in entries if entry.writers))


def write(
    contents: Contents,
    path: Path,
    *,
    what: str,
    ending: str | None = None,
    training: Callable[[], Training] = Training,
    **look: Unpack[Look],
) -> Written:
    """Write those contents that the file's format can hold; ``what`` names them in messages."""
    chosen = format_of(path, contents, what, ending)
    if chosen.write_settings is not None and not is_stream(path):
        return write_settings(chosen.write_settings(contents["settings"](chosen), placed(training(), path)), path)
    with replacing(path) as temporary:
        temporary.write_bytes(content_as(chosen, contents, training=training, **look))
    return Written.of(path, warnings=() if chosen.warnings is None else chosen.warnings(contents["schedule"](chosen)))


def write_settings(settings: TrainerSettings, path: Path) -> Written:
    """Write a trainer's settings, and first the files that they name. Gives them all, the settings first.

    Raises InputError if a file cannot be written.
    """
    for name, text in settings.files.items():
        write_text(Path(name), text)
    write_text(path, settings.text)
    return Written.of(path, *map(Path, settings.files), warnings=settings.warnings)


def named_beside(path: Path) -> tuple[Path, ...]:
    """Return the files that a trainer's settings of this name may name; they are then written too."""
    if is_stream(path) or format_of(path, _WHOLE, "").write_settings is None:
        return ()
    return (Path(str(placed(Training(), path).csv)),)


def placed(training: Training, path: Path) -> Training:
    """Return training options with a CSV next to the settings file, unless ``csv`` is set."""
    if training.csv is not None:
        return training
    order = path.with_suffix(".csv")
    return replace(training, csv=str(order if order != path else path.with_suffix(".order.csv")))


def with_settings(training: Training, settings: Settings, stages: int) -> Training:
    """Return the training with the settings' delayed weights, and blocks of stages and MTP layers by the roles of layers.

    Raises InputError for roles where no trainer has them, and for another number of MTP layers.
    """
    training = replace(training, delayed_weights=settings.delayed_weights)
    counted = None if training.layers is not None else settings.blocks(stages)
    if counted is None:
        return training
    blocks, mtp_layers = counted
    if training.mtp_layers not in (0, mtp_layers):
        raise InputError(f"the layers have {mtp_layers} of role mtp, not {training.mtp_layers}", field="mtp_layers")
    return replace(training, layers=blocks, mtp_layers=mtp_layers)


def content_as(
    chosen: Format,
    contents: Contents,
    order: Sequence[Content] = _WHOLE,
    training: Callable[[], Training] = Training,
    **look: Unpack[Look],
) -> bytes:
    """Return contents in a format as bytes: the first content in this order that the format supports.

    Raises PipeplanError for contents that the format cannot express.
    """
    content = next(kind for kind in order if kind in contents and kind in chosen.writers)
    drawn = content in {"report", "pictures", "front picture", "plan picture"}
    more = (training(),) if content == "settings" else ()
    written = chosen.writers[content](contents[content](chosen), *more, **(look if drawn else {}))
    text = written.text if isinstance(written, TrainerSettings) else written
    return text.encode() if isinstance(text, str) else text


def exported(contents: Contents, to: str) -> str:
    """Return contents in the format of this name, which holds no trainer's settings."""
    return content_as(export_format(to), contents, _EXPORTED).decode()


def format_of(
    path: Path, contents: Iterable[Content], what: str, ending: str | None = None, *, own: Iterable[str] = ()
) -> Format:
    """Return the format of the longest suffix that a file has; ``own`` are suffixes that are written without a format."""
    name = (path.name if ending is None else ending).lower()
    candidates = _drawn(name) or _with_ending(name, known_formats())
    # Of a plugin's format, the suffix may be longer: .mine.json.
    if not candidates or "." in name.removesuffix(max((entry.ending for entry in candidates), key=len)):
        candidates = _drawn(name) or _with_ending(name, all_formats())
    if not candidates and ending is None:
        require_writable(path)  # a folder has no suffix, and is a likelier slip than that of a format
    if not candidates:
        writable = {
            name: entry for name, entry in all_formats().items() if not entry.writers.keys().isdisjoint(contents)
        }
        raise UnknownNameError("suffix of an output", path.suffix or path.name, (*output_endings(writable), *own))
    chosen = max(candidates, key=lambda entry: len(entry.ending))
    if chosen.writers.keys().isdisjoint(contents):
        fitting = (entry.ending for entry in all_formats().values() if not entry.writers.keys().isdisjoint(contents))
        raise InputError(
            f"{path} would hold {' or '.join(dict.fromkeys(_HELD[entry] for entry in chosen.writers))}, but this is {what}: "
            f"choose one of {', '.join(dict.fromkeys(fitting))}"
        )
    return chosen


def _with_ending(name: str, among: Mapping[str, Format]) -> list[Format]:
    return [entry for entry in among.values() if entry.writers and name.endswith(entry.ending)]


def _drawn(name: str) -> list[Format]:
    """Return the format of a file that can be nothing but a picture, without loading the others."""
    if not name.endswith((".png", ".svg", ".pdf")):
        return []
    from pipeplan.answers.pictures import PICTURES

    return [entry for entry in PICTURES if name.endswith(entry.ending)]


_HELD: dict[Content, str] = {
    "schedule": "one schedule",
    "settings": "one schedule",
    "timeline": "one timeline",
    "costs": "the costs of one schedule",
    "record": "figures",
    "report": "a page",
    "pictures": "a picture",
    "front picture": "a picture",
    "plan picture": "a picture",
}
"""Contents of formats, in words."""


def is_picture(path: Path) -> bool:
    """Return whether a file's suffix is one of a picture or a page. Raises UnknownNameError for an unknown suffix."""
    return format_of(path, _WHOLE, "").draw is not None


def holds_schedule(path: Path) -> bool:
    """Return whether a file's suffix is one of a format that holds a schedule."""
    return not format_of(path, _WHOLE, "").writers.keys().isdisjoint({"schedule", "settings"})


def require_outputs(
    paths: Iterable[Path],
    contents: Sequence[Content] = _WHOLE,
    *,
    what: str = "another answer",
    own: tuple[str, ...] = (),
) -> None:
    """Check, before any work is done, that each output is writable and its format can hold at least one of the contents.

    ``own`` are suffixes of files that the answer writes itself.
    """
    for path in paths:
        if not path.name.lower().endswith(own):
            format_of(path, contents, what, own=own)
        require_writable(path)


def require_expressible(paths: Iterable[Path], outcome: TimelineContent) -> None:
    """Check, before any work is done, that the formats of outputs can hold schedules like this one.

    Raises InputError with the reason, for the first output that cannot.
    """
    for path in paths:
        chosen = format_of(path, _WHOLE, "a schedule")
        contents: Contents = {
            "schedule": lambda _: outcome.timeline.schedule,
            "settings": lambda _: outcome.timeline.schedule,
            "timeline": lambda _: outcome,
        }
        if chosen.writers.keys().isdisjoint(contents):
            continue
        try:
            content_as(chosen, contents)
        except PipeplanError as error:
            raise InputError(f"{path} cannot hold it: {error}", field="output") from None


def picture_name(name: str) -> str:
    """Return the name of the picture that ``simulate`` draws without an output."""
    return f"pipeline_{file_name(name)}.png"
