"""Megatron-LM's layouts: strings with a part for each stage, and the flags that give the first and last rank other layers.

A string has the stages in the order of the model, separated by ``|``: ``E`` is the embedding, ``t`` a transformer layer,
``m`` a layer of multi-token prediction, ``L`` the loss with the output layer. ``t*3`` is three layers, ``(tt|)*2`` two
stages, and commas mean nothing. The rules are those of Megatron-core's ``PipelineParallelLayerLayout`` and, for the flags,
of its ``get_num_layers_to_build``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import MOST_FORWARDS, one_line, shortened
from pipeplan.trainers.layout import MOST_ENTRIES, TrainerLayout, layout_from

SYMBOLS = {"E": "embedding", "t": "decoder", "m": "mtp", "L": "loss"}

_LAYOUT = "pipeline_model_parallel_layout"
_KEYS = {
    "decoder_first_pipeline_num_layers": "num_layers_in_first_pipeline_stage",
    "decoder_last_pipeline_num_layers": "num_layers_in_last_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size",
}
"""Names of arguments of Megatron-LM that are fields of Megatron-core's configuration under other names."""

_COUNTS = (
    "num_layers",
    "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
    "mtp_num_layers",
)
_UNSET = ("null", "None", "0")
_SWITCHES = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")


def write_layout(layout: TrainerLayout) -> str:
    """Return the layout string: ``Et*3|t*4|t*3L``."""
    parts = [
        _times("t", count) + _times("m", further)
        for count, further in zip(layout.layers, layout.mtp_of_stages, strict=True)
    ]
    return f"E{'|'.join(parts)}L"


def read_layout(text: str) -> TrainerLayout:
    """Return the layout of a layout string, or of flags or ``key: value`` lines that contain one or divide layers unevenly.

    Raises
    ------
    InputError
        If the text is not a layout, or Megatron-core refuses it.
    ShapeError
        If the flags do not divide the layers.
    """
    values = settings_in(text)
    if values.get(_LAYOUT, "null") not in _UNSET:
        return read_string(values[_LAYOUT])
    if values.keys() & {"num_layers", "pipeline_model_parallel_size"}:
        return layout_of_settings(values)
    return read_string(text)


def read_string(text: str) -> TrainerLayout:
    """Return the layout of a layout string. Raises InputError for an invalid one."""
    plain = re.sub(r"[\s,]", "", text.strip().strip("'\""))
    fault = f"invalid Megatron-LM layout {one_line(shortened(text.strip(), 60))}"
    try:
        plain = unrolled(plain)
    except OverflowError:
        raise InputError(f"{fault}: more than {MOST_ENTRIES:,} layers and stages", field="layers") from None
    if wrong := re.search(r"[^EtmL|]", plain):
        raise InputError(
            f"{fault}: {wrong[0]} is not a part, expected parts of E, t, m and L such as Et*3|t*4|t*3L", field="layers"
        )
    return layout_from(plain.split("|"), SYMBOLS, fault)


def unrolled(layout: str) -> str:
    """Return a layout string without repetitions. Raises OverflowError for more than ``MOST_ENTRIES`` layers and stages."""
    # Megatron-LM unrolls ``(tt|)*2`` first, then ``t*3``.
    for repeated in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        counts = [(len(match[1]), match[2]) for match in re.finditer(repeated, layout)]
        # Digits are counted first: Python refuses to read thousands of them as one number.
        if any(len(digits) > 6 for _, digits in counts):
            raise OverflowError
        if len(layout) + sum(length * int(digits) for length, digits in counts) > MOST_ENTRIES:
            raise OverflowError
        layout = re.sub(repeated, lambda match: match[1] * int(match[2]), layout)
    return layout


def settings_in(text: str) -> dict[str, str]:
    """Return the values of ``--flags`` and of ``key: value`` lines of a text, by the names of Megatron-core's fields."""
    pairs = [
        (match[1], match[2].split(" #")[0].rstrip(", \t").strip("'\""))
        for match in re.finditer(r"^[ \t\"]*([a-z_]+)\"?[ \t]*:[ \t]*(\S[^\n]*)$", text, re.MULTILINE)
    ]
    if "--" in text:
        pairs += _flags_in(text)
    return {_KEYS.get(name, name): value for name, value in pairs}


def _flags_in(text: str) -> list[tuple[str, str]]:
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InputError(f"cannot read the flags of a layout: {str(error).lower()}", field="layers") from None
    pairs = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            name, equals, value = word.removeprefix("--").partition("=")
            plain = after if not after.startswith("--") else "true"
            pairs.append((name.replace("-", "_"), value if equals else plain))
    return pairs


def layout_of_settings(values: Mapping[str, str]) -> TrainerLayout:
    """Return the layout that settings without a layout string describe, by the names of Megatron-core's fields.

    Raises
    ------
    InputError
        If the layers or the ranks are missing, or a value is not a count.
    ShapeError
        If the layers cannot be divided.
    """
    counts = {name: _count(name, values[name]) for name in _COUNTS if values.get(name, "null") not in _UNSET}
    missing = [name for name in ("num_layers", "pipeline_model_parallel_size") if name not in counts]
    if missing:
        raise InputError(f"a layout needs {' and '.join(missing)}, or {_LAYOUT}", field="layers")
    embedding, loss = (values.get(name, "false").lower() not in ("false", "null", "none", "0") for name in _SWITCHES)
    layers, ranks = counts["num_layers"], counts["pipeline_model_parallel_size"]
    first = counts.get("num_layers_in_first_pipeline_stage")
    last = counts.get("num_layers_in_last_pipeline_stage")
    chunks = counts.get("virtual_pipeline_model_parallel_size", 1)
    if (of_stage := counts.get("num_layers_per_virtual_pipeline_stage")) is not None:
        if first is not None or last is not None:
            raise ShapeError(
                "Megatron-LM needs num_virtual_stages_per_pipeline_rank, not num_layers_per_virtual_pipeline_stage, where "
                "the first or the last rank has other layers",
                field="layers",
            )
        of_rank = _divided(layers + embedding + loss, ranks, "layers", "ranks")
        chunks = _divided(of_rank, of_stage, "layers of a rank", "layers of a chunk")
    return TrainerLayout(
        layers=uneven_layers(layers, ranks, chunks, first, last, embedding=embedding, loss=loss),
        mtp_layers=counts.get("mtp_num_layers", 0),
    )


def uneven_layers(
    layers: int,
    ranks: int,
    chunks: int = 1,
    first: int | None = None,
    last: int | None = None,
    *,
    embedding: bool = False,
    loss: bool = False,
) -> tuple[int, ...]:
    """Return the layers of each stage as Megatron-core divides them without a layout string.

    Parameters
    ----------
    layers, ranks, chunks
        Layers of the model, pipeline ranks, and chunks per rank.
    first, last
        Layers of the first and of the last rank; None: as many as the others.
    embedding, loss
        True if the embedding, or the loss, counts as a layer.

    Raises
    ------
    ShapeError
        If the layers cannot be divided, or Megatron-core refuses the combination.
    """
    if (first is not None or last is not None) and (embedding or loss):
        raise ShapeError(
            "Megatron-LM does not combine the layers of the first or last rank with an embedding or a loss that counts as a "
            "layer",
            field="layers",
        )
    if ranks * chunks > MOST_ENTRIES:
        raise ShapeError(
            f"a layout has at most {MOST_ENTRIES:,} stages, not {ranks} ranks x {chunks} chunks", field="layers"
        )
    special = {0: first} if first is not None else {}
    special |= {ranks - 1: last} if last is not None else {}
    rest, others = layers - sum(special.values()), ranks - len(special)
    if rest < 0 or bool(rest) != bool(others):
        raise ShapeError(
            f"{first or 0} layers on the first rank and {last or 0} on the last one do not leave the {layers} layers of the "
            f"model to {ranks} ranks",
            field="layers",
        )
    of_others = "remaining " if special else ""
    usual = _divided(rest + embedding + loss, others, f"{of_others}layers", f"{of_others}ranks") if others else 0
    of_chunks = [_divided(special.get(rank, usual), chunks, "layers of a rank", "chunks") for rank in range(ranks)]
    stages = [of_chunks[stage % ranks] for stage in range(ranks * chunks)]
    stages[0] -= embedding
    stages[-1] -= loss
    if min(stages) < 0:
        raise ShapeError(f"{layers} layers are too few for {ranks * chunks} stages", field="layers")
    return tuple(stages)


def _divided(number: int, by: int, number_in_words: str, by_in_words: str) -> int:
    if by < 1 or number % by:
        raise ShapeError(
            f"Megatron-LM divides the layers evenly: {number} {number_in_words} are not a multiple of {by} {by_in_words}",
            field="layers",
        )
    return number // by


def _count(name: str, value: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", value) or int(value) > MOST_FORWARDS:
        raise InputError(
            f"invalid {name} {one_line(shortened(value, 60))}: expected a positive integer", field="layers"
        )
    return int(value)


def _times(letter: str, count: int) -> str:
    return f"{letter}*{count}" if count > 1 else letter * count
