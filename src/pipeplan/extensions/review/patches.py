"""One patch for each file: the changes of all its configurations, of which the patched text is judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeplan.extensions.review.edits import edits_of
from pipeplan.extensions.review.facts import ReviewFacts, SettingPlace
from pipeplan.extensions.review.improving import VerifiedChange, combined, needed
from pipeplan.extensions.review.readers import Reading, SourceText, read_text_of
from pipeplan.extensions.review.rule import RuleRow, judged
from pipeplan.extensions.review.text_edits import NoPatch, TextEdit, diff_of, edited_text
from pipeplan.foundation.errors import PipeplanError


@dataclass(frozen=True, slots=True)
class Patches:
    """Patches of files.

    Attributes
    ----------
    diffs
        Unified diff of each file that is patched.
    reasons
        For each configuration, why its changes are not in the patch; empty if they are, or if it has none.
    """

    diffs: Mapping[str, str]
    reasons: tuple[str, ...]


def patches_of(
    readings: Sequence[Reading],
    changes: Sequence[Sequence[VerifiedChange]],
    rules: Sequence[RuleRow],
    completed: Callable[[ReviewFacts], ReviewFacts] = lambda facts: facts,
) -> Patches:
    """Return the patches of the files of configurations.

    Parameters
    ----------
    readings
        All configurations of each file, in their order.
    changes
        Changes of each of them.
    completed
        Adds what the file does not say to the facts of a patched text, as it was added to those of the readings.
    """
    diffs: dict[str, str] = {}
    reasons = [""] * len(readings)
    for source in dict.fromkeys(reading.source for reading in readings):
        places = [place for place, reading in enumerate(readings) if reading.source == source]
        wanted = {
            own: needed(readings[place].facts, combined(changes[place]), rules)
            for own, place in enumerate(places)
            if changes[place]
        }
        if not wanted:
            continue
        removes = [{rule for step in changes[place] for rule in step.removes} for place in places]
        file = _PatchedFile(source, [readings[place] for place in places], removes, rules, completed)
        file.patch(wanted)
        for own, reason in file.reasons.items():
            reasons[places[own]] = reason
        if file.source.text != source.text:
            diffs[source.file] = diff_of(source.file, source.text, file.source.text)
    return Patches(diffs, tuple(reasons))


class _PatchedFile:
    """Text of a file while the changes of its configurations are made, with the reasons of those that are not."""

    def __init__(
        self,
        source: SourceText,
        readings: Sequence[Reading],
        removes: Sequence[set[str]],
        rules: Sequence[RuleRow],
        completed: Callable[[ReviewFacts], ReviewFacts],
    ) -> None:
        self.source = source
        self.reasons: dict[int, str] = {}
        self._readings = list(readings)
        self._removes = removes
        self._rules = [rule for rule in rules if rule.severity != "advice"]
        self._completed = completed
        self._before = [self._faults(reading.facts) for reading in readings]
        self._shown = [self._shown_by_repairs(faults) for faults in self._before]

    def patch(self, wanted: Mapping[int, Mapping[str, Any]]) -> None:
        """Make the changes of configurations: of all at once but those that refuse theirs, else one after the other."""
        able = list(wanted)
        while able:
            edits = self._edits(able, wanted)
            refusals = {own: self.reasons[own] for own in able if own in self.reasons} or self._refusals(edits, able)
            if not refusals:
                return
            if not refusals.keys() <= set(able):
                break
            self.reasons |= refusals
            able = [own for own in able if own not in refusals]
        if not able:
            return
        self.reasons = {}
        for own in wanted:
            edits = self._edits([own], wanted)
            if own not in self.reasons and (refusals := self._refusals(edits, [own])):
                self.reasons[own] = next(iter(refusals.values()))

    def _edits(self, targets: Sequence[int], wanted: Mapping[int, Mapping[str, Any]]) -> list[TextEdit]:
        """Return the edits that make the changes of configurations; records the reasons of those that the text refuses."""
        edits: list[TextEdit] = []
        for own in targets:
            try:
                edits += edits_of(self._readings[own], wanted[own], self._shared(own, wanted[own], wanted))
            except NoPatch as reason:
                self.reasons[own] = str(reason)
        return edits

    def _shared(
        self, own: int, changes: Mapping[str, Any], wanted: Mapping[int, Mapping[str, Any]]
    ) -> dict[SettingPlace, str]:
        """Return the places that other configurations have settings from, unless they need the same values there."""
        shared: dict[SettingPlace, str] = {}
        for other, reading in enumerate(self._readings):
            if other == own:
                continue
            for name, entry in reading.facts.settings.items():
                same = name in changes and wanted.get(other, {}).get(name, entry.value) == changes[name]
                if entry.place.line and not same:
                    shared.setdefault(entry.place, reading.facts.name or "another configuration")
        return shared

    def _refusals(self, edits: Sequence[TextEdit], targets: Sequence[int]) -> dict[int, str]:
        """Make edits; return why they are not made, by the configurations that refuse; empty if they are.

        Of several targets, none may be the cause: the key is -1.
        """
        blamed = targets[0] if len(targets) == 1 else -1
        try:
            text = edited_text(self.source.text, edits)
        except NoPatch as reason:
            return {blamed: str(reason)}
        again = self._read(text)
        if again is None:
            return {blamed: "the patched text cannot be read again"}
        refusals = {}
        for own, (now, reading) in enumerate(zip(self._readings, again, strict=True)):
            if own not in targets and _settings(now.facts) == _settings(reading.facts):
                continue
            after = self._faults(reading.facts)
            new = after - self._before[own] - self._shown[own]
            left = after & self._removes[own] if own in targets else set()
            if new or left:
                subject = "it" if own in targets else now.facts.name or "another configuration"
                rules = " and ".join(sorted(new or left))
                refusals[own] = f"patched, {subject} would {'have' if new else 'keep'} {rules}"
        if not refusals:
            self.source, self._readings = again[0].source, again
        return refusals

    def _read(self, text: str) -> list[Reading] | None:
        """Return the configurations of a patched text in the order of the readings; None if they are not the same."""
        facts, file = self._readings[0].facts, self.source.file
        try:
            again = read_text_of(
                text, file, trainer=facts.trainer.name or None, release=facts.release, folder=self._readings[0].folder
            )
        except PipeplanError:
            return None
        if _names(again) != _names(self._readings):
            return None
        return [replace(reading, facts=self._completed(reading.facts)) for reading in again]

    def _shown_by_repairs(self, faults: set[str]) -> set[str]:
        """Return the rules whose faults a repair does not cause, but shows: those of an estimate that errors prevent."""
        errors = {rule.id for rule in self._rules if rule.severity == "error"}
        hidden = {rule.id for rule in self._rules if rule.group == "estimates"} if errors & faults else set[str]()
        return hidden | ({"memory-tight"} if "memory-does-not-fit" in faults else set[str]())

    def _faults(self, facts: ReviewFacts) -> set[str]:
        return {fault.rule.id for fault in judged(facts, self._rules)}


def _names(readings: Sequence[Reading]) -> list[str]:
    return [reading.facts.name for reading in readings]


def _settings(facts: ReviewFacts) -> dict[str, Any]:
    return {name: entry.value for name, entry in facts.settings.items()}
