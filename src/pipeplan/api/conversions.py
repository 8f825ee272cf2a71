"""A file in another format, and a layout in the text of another trainer."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack, final, overload

from pipeplan.api.answers import FilePath, contents_of, word_for
from pipeplan.api.arguments import takes
from pipeplan.api.keywords import ConvertOptionsKeywords
from pipeplan.api.outputs import content_as, format_of, placed, require_outputs, write_settings
from pipeplan.costs import Costs, Options, option, options_of
from pipeplan.drawing import LookOptions
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import MEBIBYTE, Written, path_of, read_text, replacing, require_apart, require_writable, write_text
from pipeplan.formats import STANDARD_INPUT, Training, is_standard_input, read_file
from pipeplan.foundation.extensions import service
from pipeplan.model import Schedule, Timeline
from pipeplan.passes import Rearrangement
from pipeplan.records import Record
from pipeplan.trainers import layout_trainers, read_layout, write_layout

_LARGEST = MEBIBYTE
"""Maximum size of a file with a layout."""

_FILE_NAME = re.compile(r"[^\s\[\]|,=\"']+\.(?:txt|sh|py|ya?ml|json|toml|log)")
"""Texts that are meant as the name of a file, whether or not it exists."""


@final
class LayoutText(Record, frozen=True, kw_only=True):
    """Layout of a model over pipeline stages in a trainer's text; ``str()`` and ``print()`` give the text.

    Attributes
    ----------
    trainer
        Trainer whose text it is.
    text
        The text.
    layers
        Transformer layers of each stage.
    mtp_layers
        Layers of multi-token prediction of each stage.
    """

    trainer: str
    text: str
    layers: list[int]
    mtp_layers: list[int]

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text to a file. Raises InputError if writing is not possible."""
        write_text(Path(path), f"{self.text}\n")

    def print(self) -> None:
        """Print the text."""
        print(self.text)


def translated(source: str | os.PathLike[str], to: str) -> LayoutText:
    """Return a layout in the text of another trainer; ``source`` is a text, or a file that contains one."""
    if to not in layout_trainers():
        raise UnknownNameError("trainer with layouts", to, layout_trainers(), field="to")
    layout = read_layout(_text_of(source))
    return LayoutText(
        trainer=to,
        text=write_layout(layout, to),
        layers=list(layout.layers),
        mtp_layers=list(layout.mtp_of_stages),
    )


def _text_of(source: str | os.PathLike[str]) -> str:
    text = os.fspath(source)
    is_path = isinstance(source, os.PathLike) or is_standard_input(text) or _FILE_NAME.fullmatch(text)
    if not is_path and not os.path.isfile(text):
        return text
    path = path_of(STANDARD_INPUT if is_standard_input(text) else text, "the layout")
    return read_text(path, limit=_LARGEST, what="layout file")


_NAMES = ", ".join(layout_trainers())


@dataclass(frozen=True, kw_only=True)
class RearrangementOptions(Options):
    """Passes over a schedule's order of ops, applied one after the other."""

    split_backward: bool = option(
        False, kind="flag", title="Split backwards", group="order",
        help="Split every full backward pass into one for the inputs and one for the weights.",
    )  # fmt: skip
    retime: bool = option(
        False, kind="flag", title="Retime", group="order", help="Move weight gradients into earlier idle steps."
    )
    merge_backward: bool = option(
        False, kind="flag", title="Merge backwards", group="order",
        help="Merge adjacent halves of a backward pass.",
    )  # fmt: skip

    @property
    def rearrangement(self) -> Rearrangement:
        """The passes that are wanted. Raises InputError for passes that undo each other."""
        return Rearrangement(split_backward=self.split_backward, retime=self.retime, merge_backward=self.merge_backward)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(RearrangementOptions, LookOptions):
    """Options of a conversion."""

    to: str | None = option(
        kind="choice", title="Trainer of the layout", group="trainer", choices=layout_trainers(),
        help="Translate a layout, the division of a model's layers into stages, into this trainer's text.",
    )  # fmt: skip
    trainer_version: str | None = option(
        kind="text", title="Release", group="trainer", default="the newest known one",
        help="Release of the trainer.",
    )  # fmt: skip


@overload
def convert(source: FilePath, target: None = None, /, **options: Unpack[ConvertOptionsKeywords]) -> LayoutText: ...


@overload
def convert(source: FilePath, target: FilePath, /, **options: Unpack[ConvertOptionsKeywords]) -> Written: ...


@takes(ConvertOptions)
def convert(
    source: FilePath, target: FilePath | None = None, /, **options: Unpack[ConvertOptionsKeywords]
) -> Written | LayoutText:
    """Turn a file that holds a schedule, a timeline or costs into another format, or a layout into a trainer's text.

    Nothing is simulated. Gives what was written: the target, and the files that it names; ``warnings`` say what was changed
    in a schedule. Without a target it gives the layout for the trainer ``to``.

    Parameters
    ----------
    source, target
        The files; their suffixes select the formats, which ``docs/reference/formats.md`` lists. The source may also be the
        folder of a run's traces, of which the timeline of median length is taken. With ``to`` it is a layout, or a file
        that contains one: Megatron-LM's ``Et*3|t*4|t*3L`` or its flags, Megatron-Bridge's list of stages, torchtitan's
        ``module_fqns_per_model_part``, or numbers of layers such as ``3+4+3``.
    **options
        Passes over the order of ops, options of pictures, and a trainer's release.

    Raises
    ------
    UnknownNameError
        For an unknown suffix.
    InputError
        If a file cannot be read or written, the target is the source, the source does not hold what the target's format
        does, such as times, or a timeline's ops are to be rearranged.
    PipeplanError
        For a file that is broken, and for what the passes cannot do.

    Examples
    --------
    >>> print(pipeplan.convert("Et*2|t*2|tL", to="torchtitan"))
    tok_embeddings,layers.0,layers.1 layers.2,layers.3 layers.4,norm,lm_head
    """
    chosen = options_of(ConvertOptions, options)
    path = None if target is None else path_of(target, "the output")
    if chosen.to is not None:
        return converted_layout(source, path, chosen)
    return converted(path_of(source, "the input"), path, chosen)


def converted_layout(source: FilePath, target: Path | None, options: ConvertOptions) -> Written | LayoutText:
    """Return a layout for the trainer of the options, or write it. Raises InputError for options that do not apply."""
    assert options.to is not None
    for name, value in vars(replace(options, to=None)).items():
        if value != getattr(ConvertOptions(), name):
            raise InputError(f"{name} does not apply to a layout, which is translated to {options.to}", field=name)
    layout = translated(source, options.to)
    if target is None:
        return layout
    require_writable(target)
    require_apart([target], [Path(source)])
    layout.save(target)
    return Written.of(target)


def converted(source: Path, target: Path | None, options: ConvertOptions) -> Written:
    """See :func:`convert`."""
    if target is None:
        raise InputError(
            f"a conversion needs an output, whose suffix selects the format; for a layout, set to: {_NAMES}", field="to"
        )
    wanted = options.rearrangement
    require_outputs([target])
    require_apart([target], [source])
    runs = service("training", "runs")
    content = runs.read_run(source).typical if runs is not None and runs.holds_run(source) else read_file(source)
    if wanted:
        if not isinstance(content, Schedule):
            raise InputError(f"{source} holds {word_for(content)}: only the ops of a schedule can be rearranged")
        content = wanted(content)
    contents = contents_of(content)
    chosen = format_of(target, contents, _in_words(content))
    if options.trainer_version is not None and chosen.write_settings is None:
        raise InputError(
            f"trainer_version is for the settings of a trainer, not for {chosen.name}", field="trainer_version"
        )
    schedule = content.schedule if isinstance(content, Timeline) else content
    if chosen.write_settings is not None and isinstance(schedule, Schedule):
        settings = chosen.write_settings(schedule, placed(Training(trainer_version=options.trainer_version), target))
        require_apart([target, *map(Path, settings.files)], [source])
        return write_settings(settings, target)
    with replacing(target) as temporary:
        if chosen.convert_schedule is not None and isinstance(schedule, Schedule):
            temporary.write_bytes(chosen.convert_schedule(schedule).encode())
        else:
            temporary.write_bytes(content_as(chosen, contents, **options.look))
    if chosen.warnings is None or not isinstance(schedule, Schedule):
        return Written.of(target)
    return Written.of(target, warnings=chosen.warnings(schedule))


def _in_words(content: Schedule | Timeline | Costs) -> str:
    return (
        "a schedule, which has no times (export simulates it)" if isinstance(content, Schedule) else word_for(content)
    )
