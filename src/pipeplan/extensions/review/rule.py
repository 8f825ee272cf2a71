"""A rule: one fault that a configuration can have, as a row; and the judgement of a configuration by rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeplan.extensions.review.facts import NotSet, ReviewFacts, SettingPlace, decided
from pipeplan.extensions.review.forks import silencing_flag
from pipeplan.trainers import NEWEST, in_releases

Severity = Literal["error", "warning", "advice"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "advice")
"""From the most to the least severe."""

Question = Literal["starts", "right", "loses", "fits"]

QUESTIONS: tuple[Question, ...] = ("starts", "right", "loses", "fits")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """Fault that a configuration can have.

    Attributes
    ----------
    id
        Identifier, such as ``layers-per-rank``.
    group
        Group of rules, a page of the documentation.
    trainer
        Trainer or library that it belongs to, one of :attr:`TrainerKind.scopes`; ``any``: every trainer.
    releases
        Releases that it applies to: ``>=0.14``, ``<0.12``, ``>=0.9 <0.15``; empty: all.
    severity
        ``error``: the trainer refuses the configuration or trains wrongly; ``warning``: it is slow, tight or fragile;
        ``advice``: a better setting exists.
    question
        Question of the review that it answers: does it start, is it right, where does it lose, does it fit.
    when
        Returns True for a configuration with the fault. A setting that it reads and the configuration leaves out ends it.
    message, remedy
        Sentences; ``{c.pp}`` stands for a fact of the configuration, ``{e.bubble}`` for a figure of its estimate.
    settings
        Settings at fault, the most likely one first: the finding points at its line.
    source
        File and function of the trainer that refuses it, or the issue that reports it.
    repairs
        Names of :data:`pipeplan.extensions.review.repairs.REPAIRS` that may repair it.
    """

    id: str
    group: str
    trainer: str
    when: Callable[[ReviewFacts], Any]
    message: str
    remedy: str
    settings: tuple[str, ...]
    source: str
    severity: Severity = "error"
    question: Question = "starts"
    releases: str = ""
    repairs: tuple[str, ...] = ()

    def applies(self, facts: ReviewFacts) -> bool:
        """Return True if it is a rule of the configuration's trainer and release."""
        if self.trainer != "any" and self.trainer not in facts.trainer.scopes:
            return False
        return in_releases(_release(self.trainer, facts), self.releases)


def _release(trainer: str, facts: ReviewFacts) -> str:
    """Return the release of a rule's trainer: the configuration's own, or the newest one of a library below its trainer."""
    own = facts.trainer.scopes[:1]
    if facts.release and (trainer in own or (own == ("megatron-lm",) and trainer == "megatron-core")):
        return facts.release
    if facts.trainer.core and trainer in ("megatron-lm", "megatron-core"):
        return facts.trainer.core
    return NEWEST.get(trainer, "")


@dataclass(frozen=True, slots=True)
class RuleFault:
    """Fault of a configuration: the rule, the place, and its sentences with the configuration's values."""

    rule: RuleRow
    place: SettingPlace
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class UnjudgedRule:
    """Rule that could not be judged: the setting or fact that it misses, or the place of the key that silences it."""

    rule: RuleRow
    missing: str
    unread: SettingPlace | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a configuration.

    Attributes
    ----------
    faults
        Faults, the most severe first.
    unjudged
        Rules of its trainer that need what the configuration does not say, or whose subject it sets by keys that are not
        read.
    judged
        Number of rules that were judged, by question.
    """

    faults: tuple[RuleFault, ...]
    unjudged: tuple[UnjudgedRule, ...]
    judged: Mapping[Question, int]


def judgement(facts: ReviewFacts, rules: Iterable[RuleRow]) -> Judgement:
    """Return the judgement of a configuration by the rules that apply to it."""
    faults: list[RuleFault] = []
    unjudged: list[UnjudgedRule] = []
    judged: Counter[Question] = Counter()
    for rule in rules:
        if not rule.applies(facts):
            continue
        unread = silencing_flag(facts.unread, group=rule.group, question=rule.question, settings=rule.settings)
        if unread is not None:
            unjudged.append(UnjudgedRule(rule, unread.key, unread))
            continue
        try:
            fault = _fault(rule, facts)
        except NotSet as missing:
            # A rule on the estimate of a training step is none of a job that does not train.
            if facts.trains or str(missing) != "phase":
                unjudged.append(UnjudgedRule(rule, str(missing)))
            continue
        judged[rule.question] += 1
        faults += [] if fault is None else [fault]
    ordered = sorted(faults, key=lambda fault: SEVERITIES.index(fault.rule.severity))
    return Judgement(tuple(ordered), tuple(unjudged), judged)


def judged(facts: ReviewFacts, rules: Iterable[RuleRow]) -> tuple[RuleFault, ...]:
    """Return the faults of a configuration by these rules, the most severe first."""
    return judgement(facts, rules).faults


def _fault(rule: RuleRow, facts: ReviewFacts) -> RuleFault | None:
    """Return the fault of a configuration by a rule; None without it. Raises NotSet if the rule cannot be judged."""
    if not decided(rule.when, facts):
        return None
    figures = _Figures(facts)
    message, remedy = rule.message.format(c=facts, e=figures), rule.remedy.format(c=facts, e=figures)
    return RuleFault(rule, facts.place_of(rule.settings), _short(message), _short(remedy))


_LONGEST = 400
"""Maximum number of characters of a message: a file may have names of any length."""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


class _Figures:
    """Figures of the estimate of a configuration, which is computed only if a message has one."""

    def __init__(self, facts: ReviewFacts) -> None:
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        from pipeplan.extensions.review.estimating import estimated  # loads the planner

        return getattr(estimated(self._facts), name)
