"""Why there is no legal configuration: the rule that stands in the way, and what would be legal nearby."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pipeplan.errors import ShapeError
from pipeplan.planner.selection.candidates import FRAME_FIELDS, drafts, frames, variants
from pipeplan.planner.selection.choices import short_name, written
from pipeplan.planner.selection.legality import RULES, Rule
from pipeplan.planner.selection.question import Question


def refusal(question: Question) -> ShapeError | None:
    """Why a question has no legal configuration; None where it has one.

    The rule to blame is one without which there would be a configuration; where several stand in the way together, the one
    that refused the most.
    """
    refusals: Counter[str] = Counter()
    if next(drafts(question, refusals), None) is not None:
        return None
    asked = _asked(question)
    for name, _ in refusals.most_common():
        if next(drafts(question, without=frozenset({name})), None) is not None:
            return _error(question, _rule(name), asked)
    worst = refusals.most_common(1)[0][0]
    return _error(question, _rule(worst), asked)


def _error(question: Question, rule: Rule, asked: str) -> ShapeError:
    remedy = _nearest_batches(question) if rule.name == "batch" else _legal_values(question, rule)
    field = "global_batch" if rule.name == "batch" and "data" not in question.fixed else "fix"
    return ShapeError(f"no configuration{asked} is legal: {rule.sentence(question)}{remedy}", field=field)


def _rule(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


def _asked(question: Question) -> str:
    fixed = " ".join(
        f"{short_name(field)}={','.join(written(field, value) for value in values)}"
        for field, values in question.fixed.items()
        if not (field == "software" and "trainer" in question.fixed)
    )
    return f" with {fixed}" if fixed else ""


def _nearest_batches(question: Question) -> str:
    """The batches around the one asked for that some frame could share equally."""
    without = frozenset({"batch"})
    shares = {
        frame["data"] * min(question.fixed.get("microbatch_size", (1,)))
        for frame in islice(frames(question, without=without), 50_000)
    }
    if not shares:
        return ""
    batch = question.global_batch
    below = max((batch // share * share for share in shares), default=0)
    above = min(-(-batch // share) * share for share in shares)
    near = [str(each) for each in dict.fromkeys((below, above)) if each > 0]
    return f"; the nearest that can be shared so: {' or '.join(near)}" if near else ""


def _legal_values(question: Question, rule: Rule) -> str:
    """Values of a fixed field under which there is a configuration."""
    for field in question.fixed:
        if field not in rule.needs:
            continue
        fixed = {name: values for name, values in question.fixed.items() if name != field}
        freed = Question(
            model=question.model,
            cluster=question.cluster,
            global_batch=question.global_batch,
            sequence=question.sequence,
            memory_limit=question.memory_limit,
            fixed=fixed,
        )
        if field in FRAME_FIELDS:
            found = {written(field, frame[field]) for frame in islice(_whole(freed), 20_000)}
        else:
            found = {
                written(field, each[field]) for each in islice(drafts(freed), 20_000) if each.get(field) is not None
            }
        if found:
            return f"; legal with {short_name(field)} {', '.join(sorted(found, key=_order)[:12])}"
    return ""


def _whole(question: Question) -> Iterator[dict[str, Any]]:
    """Frames that have a variant."""
    return (frame for frame in frames(question) if next(variants(question, frame), None) is not None)


def _order(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (0, text)
