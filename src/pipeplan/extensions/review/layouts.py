"""Layouts of every trainer as one form: for each stage, the letters of its layers.

Megatron's letters: ``E`` embedding, ``t`` transformer layer, ``m`` MTP layer, ``L`` loss with the output layer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeplan.foundation.errors import InputError
from pipeplan.model import one_line
from pipeplan.trainers import MOST_ENTRIES, unrolled

_NAMES = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L", "e": "E", "t": "t", "m": "m", "l": "L"}


def letters_of(layout: str | Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the letters of each stage of a Megatron layout, a string or a list per stage.

    Raises
    ------
    InputError
        For unknown letters or names, and for too many layers.
    """
    if not isinstance(layout, str):
        return tuple("".join(_letter(name) for name in stage) for stage in layout)
    text = re.sub(r"[\s,]", "", layout)
    try:
        text = unrolled(text)
    except OverflowError:
        raise InputError(f"the layout has more than {MOST_ENTRIES:,} layers") from None
    unknown = sorted(set(text) - set("EtmL|"))
    if unknown:
        raise InputError(f"unknown letter '{one_line(unknown[0])}' in the layout: expected E, t, m, L and |")
    return tuple(text.split("|"))


def _letter(name: str) -> str:
    letter = _NAMES.get(name.strip().lower())
    if letter is None:
        raise InputError(
            f"unknown layer '{one_line(name[:40])}' in the layout: expected embedding, decoder, mtp or loss"
        )
    return letter


def written_layout(stages: Sequence[str]) -> str:
    """Return the shortest usual text of a layout: equal letters as ``t*4``, equal neighbouring stages as ``(t*4|)*6``."""
    texts = [re.sub(r"(.)\1{2,}", lambda match: f"{match[1]}*{len(match[0])}", stage) for stage in stages]
    parts: list[str] = []
    at = 0
    while at < len(texts):
        same = next((stop for stop in range(at, len(texts)) if texts[stop] != texts[at]), len(texts))
        # The last stage has no separator behind it, so that a run that ends the layout leaves it out.
        count = same - at - (same == len(texts))
        parts.append(f"({texts[at]}|)*{count}" if count > 2 else f"{texts[at]}|" * count)
        at = same
    return "".join(parts) + texts[-1]


def part_letters(parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the letters of each model part of torchtitan's ``module_fqns_per_model_part``."""
    return tuple("".join(filter(None, map(_module_letter, part))) for part in parts)


def _module_letter(name: str) -> str:
    if re.search(r"\blayers?\.\d+$", name):
        return "t"
    if re.search(r"(tok_embeddings|embed_tokens|embedding)$", name):
        return "E"
    return "L" if re.search(r"(output|lm_head)$", name) else ""
