"""Rules that were not judged, in words: what is missing, and the option that states it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pipeplan.extensions.review import QUESTIONS, SETTINGS, Judgement, Question, ReviewFacts, UnjudgedRule, spelling
from pipeplan.foundation.records import Record
from pipeplan.model import counted


class MissingFact(Record, frozen=True, kw_only=True):
    """Fact that rules need and a configuration does not state.

    Attributes
    ----------
    what
        The fact in words, such as ``the number of layers``.
    rules
        Number of rules that need it.
    give
        Option that states it, such as ``--model``; empty if only the file can.
    sentence
        The fact, the number of rules and the option as a sentence.
    """

    what: str
    rules: int
    give: str
    sentence: str


class ReviewedQuestion(Record, frozen=True, kw_only=True):
    """Question of a review, and how far it was answered.

    Attributes
    ----------
    question
        Does it start, is it right, where does it lose, does it fit.
    judged, not_judged
        Numbers of rules that were judged, and that were not.
    missing
        Reasons why rules were not judged, the most frequent first.
    """

    question: Question
    judged: int
    not_judged: int
    missing: tuple[MissingFact, ...]


_WORDS = {
    ("the number of layers", "--model"): "layers model_name",
    ("the size of the model", "--model"): "hidden heads kv_groups head_dim experts mla tied",
    ("the number of GPUs", "--cluster"): "gpus nodes gpus_per_node",
    ("the GPU", "--cluster"): "device",
    ("the pipeline degree", ""): "pp",
    ("the tensor degree", ""): "tp",
    ("the context degree", ""): "cp",
    ("the expert degree", ""): "ep etp",
    ("the data degree", ""): "dp",
    ("the sequence length", "--sequence"): "seq_length",
    ("the global batch", "--global-batch"): "global_batch",
    ("the number of microbatches", ""): "microbatches micro_batch local_batch",
    ("the split of the layers", ""): (
        "layout vpp first_stage_layers last_stage_layers layers_per_virtual_stage layers_per_stage modules_per_part "
        "partition_method account_embedding account_loss"
    ),
    ("the schedule", ""): "schedule group_size",
}
"""Settings that rules miss by the fact that they state and the option that states it; others are named themselves."""

_FACTS = {name: fact for fact, names in _WORDS.items() for name in names.split()}

_Fact = tuple[str, str]
"""Fact that rules miss in words, and the option that states it; empty if there is none."""

_SPLIT: _Fact = ("the split of the layers", "")
OTHER_SETTINGS = "other settings"
"""Fact of the rules that miss rarer settings; the names of the settings follow a colon."""

_OTHER: _Fact = (OTHER_SETTINGS, "")
_STARTS: _Fact = ("a configuration that starts", "")
_NO_ESTIMATE: _Fact = ("an estimate", "")
_UNREAD: _Fact = ("the meaning of keys that are not read", "")

_REASONS: Mapping[_Fact, str] = {
    _STARTS: "the configuration does not start",
    _NO_ESTIMATE: "there is no estimate",
    _UNREAD: "keys that are not read may decide them",
}

_MOST_FACTS = 3
"""Number of facts without an option that have a sentence of their own."""

_MOST_NAMED = 3
"""Number of other settings that a sentence names."""


def questions_of(judgement: Judgement, facts: ReviewFacts) -> tuple[ReviewedQuestion, ...]:
    """Return how far each question was answered."""
    refused = any(fault.rule.severity == "error" for fault in judgement.faults)
    questions = []
    for question in QUESTIONS:
        unjudged = [one for one in judgement.unjudged if one.rule.question == question]
        counts = Counter(_fact_of(one, facts, refused) for one in unjudged)
        # Keep the answer short: rarer facts that no option states are listed with the other settings.
        rare = [fact for fact, _ in counts.most_common()[_MOST_FACTS:] if not fact[1] and fact not in _REASONS]
        others = Counter(one.missing for one in unjudged if _fact_of(one, facts, refused) in (*rare, _OTHER))
        counts = Counter({fact: rules for fact, rules in counts.items() if fact not in (*rare, _OTHER)})
        missing = _missing(counts)
        if others:
            missing.append(_missing_fact((_named(others, facts), ""), others.total()))
        questions.append(
            ReviewedQuestion(
                question=question,
                judged=judgement.judged.get(question, 0),
                not_judged=len(unjudged),
                missing=tuple(missing),
            )
        )
    return tuple(questions)


def _fact_of(one: UnjudgedRule, facts: ReviewFacts, refused: bool) -> _Fact:
    """Return the fact that a rule misses; of a configuration that does not start, rules on its estimate miss just that."""
    if one.unread is not None:
        return _UNREAD
    fact = _FACTS.get(one.missing, _OTHER if one.missing in SETTINGS else _NO_ESTIMATE)
    if one.missing == "gpus" and (facts.has("gpus") or facts.has("nodes", "gpus_per_node")):
        fact = _NO_ESTIMATE  # of GPUs that the degrees do not divide
    return _STARTS if refused and fact in (_SPLIT, _NO_ESTIMATE) else fact


def _named(others: Counter[str], facts: ReviewFacts) -> str:
    names = [spelling(facts, name, "list") for name, _ in others.most_common()]
    more = len(names) - _MOST_NAMED
    return f"{_OTHER[0]}: {', '.join(names[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"


def summed(configurations: Sequence[Sequence[ReviewedQuestion]]) -> tuple[ReviewedQuestion, ...]:
    """Return the questions of several configurations together."""
    if len(configurations) == 1:
        return tuple(configurations[0])
    questions = []
    for question in QUESTIONS:
        own = [one for each in configurations for one in each if one.question == question]
        counts = Counter[_Fact]()
        for fact in (fact for one in own for fact in one.missing):
            counts[_OTHER if fact.what.startswith(_OTHER[0]) else (fact.what, fact.give)] += fact.rules
        questions.append(
            ReviewedQuestion(
                question=question,
                judged=sum(one.judged for one in own),
                not_judged=sum(one.not_judged for one in own),
                missing=tuple(_missing(counts)),
            )
        )
    return tuple(questions)


def _missing(counts: Counter[_Fact]) -> list[MissingFact]:
    """Return the facts, the most frequent first, and of equal ones those that an option states."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], not item[0][1]))
    return [_missing_fact(fact, rules) for fact, rules in ordered]


def _missing_fact(fact: _Fact, rules: int) -> MissingFact:
    what, give = fact
    reason = _REASONS.get(fact, f"{what} is not stated")
    if what.startswith(_OTHER[0]):
        reason = f"{_OTHER[0]} are not stated{what.removeprefix(_OTHER[0])}"
    option = f": give {give}" if give else ""
    sentence = f"not judged: {counted(rules, 'rule')}, because {reason}{option}"
    return MissingFact(what=what, rules=rules, give=give, sentence=sentence)


def unknown_in(judgement: Judgement, facts: ReviewFacts) -> tuple[str, ...]:
    """Return what keeps a configuration without findings from being called clean: layers, degrees or the trainer."""
    if facts.own is not None:
        return ()
    known = {
        "the trainer": bool(facts.trainer.name),
        "the number of layers": facts.has("layers") or bool(facts.get("hybrid_pattern", None)),
        "the pipeline degree": facts.has("pp"),
        "the tensor degree": facts.has("tp"),
        _SPLIT[0]: facts.get("pp", 1) == 1 or not any(map(_is_on_split, judgement.unjudged)),
    }
    return tuple(name for name, is_known in known.items() if not is_known)


def _is_on_split(one: UnjudgedRule) -> bool:
    """Return True if a rule on what starts misses the split of the layers, or an unread key may decide the split."""
    if one.unread is not None:
        return one.rule.group == "layouts"
    return one.rule.question == "starts" and _FACTS.get(one.missing) == _SPLIT


def not_read(judgement: Judgement, facts: ReviewFacts) -> Iterator[str]:
    """Yield the keys that are not read and silence rules, each once."""
    places = [*facts.unread, *(one.unread for one in judgement.unjudged if one.unread is not None)]
    yield from dict.fromkeys(place.key for place in places)
