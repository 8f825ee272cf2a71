"""Pattern of a hybrid model: which mixer and which feed-forward network each layer has, as short text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipeplan.foundation.errors import InputError

ATTENTION, WINDOWED, SHARED = "A", "W", "S"
"""Mixers that every model may have: attention, attention with a window, and sparse attention that reads the keys which the
indexer of an earlier layer selected."""

DENSE, EXPERTS, HASHED = "D", "E", "H"
"""Feed-forward networks: a dense FFN, a mixture of experts, and one whose experts a hash of the token selects."""

_WORD = re.compile(r"([1-9][0-9]{0,5})?([A-CFGI-Z]?)([DEH]?)")


@dataclass(frozen=True, slots=True)
class LayerForm:
    """Mixer and feed-forward network of a layer, by their letters.

    Attributes
    ----------
    mixer
        ``A``, ``W``, ``S``, or the letter of one of the model's own mixers (``ModelShape.mixers``); empty: none.
    ffn
        ``D``, ``E`` or ``H``; empty: none.
    """

    mixer: str = ATTENTION
    ffn: str = DENSE

    @property
    def has_experts(self) -> bool:
        """True if the layer is a mixture of experts."""
        return self.ffn in (EXPERTS, HASHED)

    @property
    def blocks(self) -> int:
        """Number of residual branches: 1 or 2."""
        return bool(self.mixer) + bool(self.ffn)


def read_pattern(text: str) -> tuple[LayerForm, ...]:
    """Return the form of each layer of a pattern.

    A word is a layer: the letter of its mixer, then that of its FFN, either of which may be missing. A number before a word
    repeats it: ``3ME AE`` is three layers with mixer ``M`` and experts, then one with attention and experts.

    Raises
    ------
    InputError
        If a word is not of this form.
    """
    forms: list[LayerForm] = []
    for word in text.split():
        match = _WORD.fullmatch(word)
        if match is None or not (match[2] or match[3]):
            raise InputError(
                f"invalid word {word[:40]!r} of a pattern: expected a mixer's letter and D, E or H, such as AE or 3MD",
                field="pattern",
            )
        forms += [LayerForm(match[2], match[3])] * int(match[1] or 1)
    return tuple(forms)


def write_pattern(forms: Iterable[LayerForm]) -> str:
    """Return the text of a pattern; :func:`read_pattern` reads it back."""
    runs = ((form, len(list(run))) for form, run in groupby(forms))
    return " ".join(f"{count if count > 1 else ''}{form.mixer}{form.ffn}" for form, count in runs)


def joined_forms(mixers: Sequence[str], ffns: Sequence[str]) -> str:
    """Return the pattern of layers with these mixers and these FFNs."""
    return write_pattern(LayerForm(mixer, ffn) for mixer, ffn in zip(mixers, ffns, strict=True))
