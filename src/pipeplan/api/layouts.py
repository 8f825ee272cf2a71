"""Layouts in the texts of trainers: translated from one trainer to another, and in place of numbers of layers."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

from pipeplan.costs import Layer, Settings
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import MEBIBYTE, path_of, read_text, write_text
from pipeplan.formats import STANDARD_INPUT, is_standard_input
from pipeplan.records import Record
from pipeplan.trainers import TrainerLayout, layout_trainers, read_layout, write_layout

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


def with_stage_layers(settings: Settings) -> Settings:
    """Return settings with the numbers of layers of a layout's text, if costs per layer need them."""
    text = settings.layers_per_stage
    if settings.layers is None or not isinstance(text, str):
        return settings
    return replace(settings, layers_per_stage=_counts(read_layout(text), settings.layers))


def _counts(layout: TrainerLayout, layers: Sequence[Layer]) -> tuple[int, ...]:
    """Return how many of the layers with costs each stage has; embedding, prediction layers and head may be among them."""
    total, blocks = sum(layer.count for layer in layers), sum(layout.layers)
    mtp = layout.mtp_layers if total - blocks >= layout.mtp_layers else 0
    ends = total - blocks - mtp
    first, last = _differs(layers, 0, 1), _differs(layers, -1, -2)
    if not 0 <= ends <= 2 or (ends and ends != first + last):
        raise InputError(
            f"the layout has {blocks} transformer layers, which are not the {total} layers with costs less an embedding and "
            "a head at the ends: write numbers of layers instead",
            field="layers_per_stage",
        )
    head = ends > 0 and last
    counts = [
        layers_of_stage + (further if mtp else 0)
        for layers_of_stage, further in zip(layout.layers, layout.mtp_of_stages, strict=True)
    ]
    counts[0] += ends - head
    counts[-1] += head
    return tuple(counts)


def _differs(layers: Sequence[Layer], place: int, other: int) -> bool:
    """Return True if one of several layers alone has other costs than another one."""
    return len(layers) > 1 and layers[place].count == 1 and layers[place] != replace(layers[other], count=1)
