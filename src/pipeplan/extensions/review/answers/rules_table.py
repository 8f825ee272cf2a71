"""The rules of reviews, as a record and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from pipeplan.answers.answers import Listing
from pipeplan.answers.parts import columns, line
from pipeplan.extensions.review import RULES, Question, RuleRow, Severity
from pipeplan.foundation.records import Record
from pipeplan.model import counted

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part


class ReviewRule(Record, frozen=True, kw_only=True):
    """Rule of reviews; in its sentences, ``{pp}`` stands for a setting of the configuration."""

    id: str
    group: str
    trainer: str
    releases: str
    severity: Severity
    question: Question
    message: str
    remedy: str
    settings: tuple[str, ...]
    source: str


@final
class ReviewRules(Listing[ReviewRule], frozen=True, kw_only=True, eq=False):
    """Every rule of reviews; iteration gives the rules, and ``to_frame()`` has a row per rule."""

    _listed = "rules"
    noun = "rule"
    name_attribute = "id"

    rules: tuple[ReviewRule, ...]

    def _table(self) -> Iterator[Part]:
        """Return a table for each group."""
        for group in dict.fromkeys(rule.group for rule in self.rules):
            table = columns(group, "trainer", "fault", padding=1, text_last=True)
            for rule in self.rules:
                if rule.group == group:
                    releases = f" {rule.releases}" if rule.releases else ""
                    table.add_row(rule.id, f"{rule.trainer}{releases}", f"{rule.severity}: {rule.message}")
            yield table
            yield line()
        yield line(f"{counted(len(self), 'rule')}: --json has the remedies and sources")

    def __repr__(self) -> str:
        return f"<ReviewRules: {counted(len(self), 'rule')}>"


def review_rules() -> ReviewRules:
    """List the rules of reviews.

    Raises
    ------
    InputError
        Never: every rule is right.

    Examples
    --------
    >>> len(pipeplan.review_rules()) > 120
    True
    """
    return ReviewRules(rules=tuple(map(_record, RULES)))


def _record(rule: RuleRow) -> ReviewRule:
    return ReviewRule(
        id=rule.id,
        group=rule.group,
        trainer=rule.trainer,
        releases=rule.releases,
        severity=rule.severity,
        question=rule.question,
        message=_plain(rule.message),
        remedy=_plain(rule.remedy),
        settings=rule.settings,
        source=rule.source,
    )


def _plain(sentence: str) -> str:
    """Return a sentence with ``{pp}`` in place of ``{c.pp}``."""
    return sentence.replace("{c.", "{").replace("{e.", "{")
