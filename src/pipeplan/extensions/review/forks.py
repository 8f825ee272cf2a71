"""Flags of forks of Megatron-LM: those that Megatron-LM does not have, and the rules that they silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeplan.extensions.review.facts import SettingPlace


@dataclass(frozen=True, slots=True)
class _Subject:
    """Words of flags, and the rules of their subject: by group, and by the settings that a rule blames first."""

    words: re.Pattern[str]
    groups: frozenset[str]
    settings: frozenset[str]


def _subject(words: str, groups: str, settings: str) -> _Subject:
    return _Subject(re.compile(words), frozenset(groups.split()), frozenset(settings.split()))


_SUBJECTS = (
    _subject(
        r"layer(?!_?norm)|_stages?(?:_|$)|^stages?_|pipe|noop|schedule|dualpipe|(?:^|_)v?pp_",
        "layouts schedules estimates",
        "vpp group_size",
    ),
    _subject(r"moe|expert|router|extend_ep|topk", "experts", "ep etp experts"),
    _subject(r"recompute|swap|offload|stash|checkpoint_activations|memory_opt", "memory", ""),
    _subject(r"context|ulysses|attention|(?:^|_)attn|(?:^|_)cp_|megatron_cp", "", "cp cp_comm_type hierarchical_cp"),
    _subject(r"(?:^|_)tp_|tensor(?!board)|(?:^|_)2d_tp", "", "heads kv_groups"),
)

_BLAMED = 3
"""Number of a rule's first settings that decide its subject."""

_FORKS = frozenset({"megatron-lm", "mindspeed", "pai-megatron-patch"})
"""Trainers whose parser is Megatron-LM's, with more arguments or not."""


def unread_flags(others: Iterable[SettingPlace], trainer: str) -> tuple[SettingPlace, ...]:
    """Return the places of flags of parallel training that the trainer's Megatron-LM does not have."""
    if trainer not in _FORKS:
        return ()
    return tuple(place for place in others if (name := _name(place)) not in _own() and _subjects(name))


def silencing_flag(
    unread: Iterable[SettingPlace], *, group: str, question: str, settings: Sequence[str]
) -> SettingPlace | None:
    """Return the first unread flag that changes what a rule judges; None if the rule can be judged.

    Parameters
    ----------
    unread
        Places of the flags (:func:`unread_flags`).
    group, question, settings
        Group, question and settings of the rule.
    """
    for place in unread:
        for subject in _subjects(_name(place)):
            of_memory = "memory" in subject.groups and question == "fits"
            if of_memory or group in subject.groups or subject.settings.intersection(settings[:_BLAMED]):
                return place
    return None


def _name(place: SettingPlace) -> str:
    return place.key.lstrip("-").replace("-", "_").lower()


def _subjects(name: str) -> list[_Subject]:
    return [subject for subject in _SUBJECTS if subject.words.search(name)]


@cache
def _own() -> frozenset[str]:
    """Return the arguments of Megatron-LM, of all its releases, that have a word of a subject."""
    return frozenset(Path(__file__).with_name("megatron_flags.txt").read_text(encoding="utf-8").split())
