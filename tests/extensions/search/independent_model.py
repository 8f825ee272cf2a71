"""The exact answer, from a model of its own: optional intervals for CP-SAT, nothing shared with the search.

For each stage and microbatch there is a forward, and a backward that runs whole (B) or in halves (I, and later W). A
forward may run together with a backward of its rank; such a pair is an interval in the place of its two.

Microbatches in order
    For the makespan, and for it alone, the microbatches of a stage run in one order, forwards and backwards. That loses
    nothing: take any schedule, and let the k-th forward of every stage, as they stand in time, be of microbatch k, the
    k-th backward too (whole or in halves as it stands there), and the j-th W of a stage belong to its j-th I. No bar moves
    and no rank holds more at any time, for all bars of a stage and kind add the same. And everything still waits long
    enough: if each of m bars starts no sooner than d after its own one of m other bars has ended, then the k-th of the
    first to start starts no sooner than d after the k-th of the others to end. Jobs of a kind and stage do not overlap,
    so the order of their starts is that of their ends. A forward paired with a backward now is of another microbatch
    than it, for its own forward ends before that backward starts.

    The span is another matter: there jobs start as soon as they can, and a rank that runs microbatch 1 first starts later
    than one that runs microbatch 0 first. So nothing is assumed then, except that the first stage's forwards are in
    order, which numbers the microbatches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Literal

from ortools.sat.python import cp_model

from tests.extensions.search.case import Case, WholeCase, whole
from tests.extensions.search.replay import Job, Rows, Turn, change, replay

Status = Literal["optimal", "infeasible", "unknown"]


@dataclass(frozen=True)
class Answer:
    """The least objective of a case, in whole units.

    ``optimal``: ``value`` is the least one, and ``rows`` have it. ``infeasible``: no order fits. ``unknown``: out of
    time; the least one is at least ``bound``, and at most ``value`` where one was found. ``disagreed``: CP-SAT proved a
    value optimal, or nothing feasible, and then found a better one.
    """

    shop: WholeCase
    status: Status
    bound: int
    value: int | None = None
    rows: Rows | None = None
    seconds: float = 0.0
    disagreed: bool = False

    @property
    def reachable(self) -> Fraction | None:
        """What an order is known to reach, in the unit of the case."""
        return None if self.value is None else self.value * self.shop.unit

    @property
    def lowest(self) -> Fraction:
        """What the objective is at least, as far as is known, in the unit of the case."""
        return self.bound * self.shop.unit

    @property
    def least(self) -> Fraction | None:
        """The least objective in the unit of the case; None where nothing fits, or where it is not known."""
        return self.reachable if self.status == "optimal" else None


def solve(case: Case, *, seconds: float = 30.0) -> Answer:
    """The exact answer within a time, twice proven.

    A proof alone is not believed: CP-SAT 9.15 now and then says of a value that it is optimal where its own other settings
    find a better one. On the search's model that was always the inclusion step of its presolve, which is left out here; on
    this one, for the span, it happened without that step too (case 2536 of up to 8 cells, where the linear propagation made
    the difference). So a second run, without presolve, tries to beat the first.
    """
    shop = whole(case)
    if any(cap is not None and cap < 0 for cap in shop.caps):
        return Answer(shop, "infeasible", 0)
    first = _run(shop, shop.horizon, seconds, presolve_inclusion_work_limit=0, new_linear_propagation=False)
    if first.status == "unknown":
        return first
    beaten = shop.horizon if first.value is None else first.value - 1
    second = _run(shop, beaten, seconds, cp_model_presolve=False)
    taken = first.seconds + second.seconds
    if second.status == "infeasible":
        return replace(first, seconds=taken)
    if second.value is not None:
        return replace(second, seconds=taken, disagreed=True)
    return replace(first, status="unknown", bound=second.bound, seconds=taken)


def _run(shop: WholeCase, most: int, seconds: float, **parameters: int) -> Answer:
    """One run of the solver for a value of at most ``most``."""
    model = _Model(shop, most)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    for name, given in parameters.items():
        setattr(solver.parameters, name, given)
    status = solver.solve(model.model)
    if status == cp_model.MODEL_INVALID:
        raise AssertionError(model.model.validate())
    if status == cp_model.INFEASIBLE:
        return Answer(shop, "infeasible", 0, seconds=solver.wall_time)
    bound = _ceil(solver.best_objective_bound)
    if status == cp_model.UNKNOWN:
        return Answer(shop, "unknown", bound, seconds=solver.wall_time)
    rows = model.rows(solver)
    value = replay(shop, rows).value(shop.case.objective)
    proven = status == cp_model.OPTIMAL
    assert value == round(solver.objective_value) or (not proven and value <= solver.objective_value)
    return Answer(shop, "optimal" if proven else "unknown", bound, value, rows, solver.wall_time)


def _ceil(bound: float) -> int:
    return -int(-(bound - 1e-6) // 1)


class _Model:
    """The constraints. A literal is a variable of CP-SAT or a plain truth value."""

    def __init__(self, shop: WholeCase, most: int) -> None:
        self.shop, self.case, self.most = shop, shop.case, most
        self.in_order = shop.case.objective == "makespan"
        self.model = cp_model.CpModel()
        self.cells = list(product(range(self.case.stages), range(self.case.microbatches)))
        self.split = {
            cell: self.model.new_bool_var(f"split{cell}") if self.case.split else False for cell in self.cells
        }
        self.work: list[Any] = [0] * self.case.ranks
        self.start: dict[Job, Any] = {}
        self.end: dict[Job, Any] = {}
        self.pairs: dict[tuple[Job, Job], dict[str, Any]] = {}
        self._precedes: dict[tuple[Job, Job], Any] = {}
        self._make_jobs()
        for rank in range(self.case.ranks):
            self._occupy(rank)
            self._hold(rank)
        self._wait()
        if self.in_order:
            self._run_in_order()
        self._value()

    def _make_jobs(self) -> None:
        """A backward that runs whole is the job I too, with the time of B; its W is there and takes no time."""
        for stage, microbatch in self.cells:
            for kind in "FIW":
                job = Job(kind, stage, microbatch)
                self.start[job] = self.model.new_int_var(0, self.shop.horizon, f"start{job}")
                self.end[job] = self.model.new_int_var(0, self.shop.horizon, f"end{job}")

    def _jobs(self, rank: int, kinds: str) -> list[Job]:
        stages = self.case.stages_on(rank)
        return [Job(kind, stage, k) for kind in kinds for stage in stages for k in range(self.case.microbatches)]

    def _occupy(self, rank: int) -> None:
        """One thing at a time: forwards and backwards alone, pairs, weight backwards."""
        bars = []
        paired = defaultdict(list)
        longer: dict[Job, list[Any]] = defaultdict(list)
        for forward, backward in product(self._jobs(rank, "F"), self._jobs(rank, "I")):
            kinds = self._pair(forward, backward)
            for kind, literal in kinds.items():
                time = self.shop.pair_time(forward.stage, kind, backward.stage)
                bars.append(self._bar(forward, time, literal))
                self.work[rank] += literal * (
                    time - self.shop.times["F"][forward.stage] - self.shop.times[kind][backward.stage]
                )
                for job, own in ((forward, "F"), (backward, kind)):
                    paired[job].append(literal)
                    longer[job].append(literal * (time - self.shop.times[own][job.stage]))
        for job in self._jobs(rank, "FIW"):
            split = self.split[job.stage, job.microbatch]
            times = {kind: self.shop.times[kind][job.stage] for kind in "FBIW"}
            ways = {"F": [(times["F"], True)], "W": [(times["W"], split)]}
            ways["I"] = [(times["B"], _negated(split)), (times["I"], split)]
            own_time = sum(time * literal for time, literal in ways[job.kind])
            self.work[rank] += own_time
            self.model.add(self.end[job] == self.start[job] + own_time + sum(longer[job]))
            together = self._any(paired[job])
            for time, literal in ways[job.kind]:
                present = self._all([literal, _negated(together)])
                if present is not False:
                    bars.append(self._bar(job, time, present))
        self.model.add_no_overlap(bars)

    def _pair(self, forward: Job, backward: Job) -> dict[str, Any]:
        """For each kind of backward, whether this forward runs together with it; in order, only where that saves time."""
        if self.shop.pairs is None or forward.microbatch == backward.microbatch:
            return {}
        if self.leads_to(forward, backward):
            return {}
        literals = {}
        split = self.split[backward.stage, backward.microbatch]
        for kind, allowed in (("B", _negated(split)), ("I", split)):
            apart = self.shop.times["F"][forward.stage] + self.shop.times[kind][backward.stage]
            together = self.shop.pair_time(forward.stage, kind, backward.stage)
            if allowed is not False and (together < apart or not self.in_order):
                literal = self.model.new_bool_var(f"pair{forward}{kind}{backward}")
                if allowed is not True:
                    self.model.add_implication(literal, allowed)
                self.model.add(self.start[forward] == self.start[backward]).only_enforce_if(literal)
                self.model.add(self.end[forward] == self.end[backward]).only_enforce_if(literal)
                literals[kind] = literal
        if literals:
            self.pairs[forward, backward] = literals
        return literals

    def _bar(self, job: Job, time: int, present: Any) -> Any:
        if present is True:
            return self.model.new_fixed_size_interval_var(self.start[job], time, f"bar{job}")
        return self.model.new_optional_fixed_size_interval_var(self.start[job], time, present, f"bar{job}")

    def _wait(self) -> None:
        last = self.case.stages - 1
        for stage, microbatch in self.cells:
            forward, backward, weights = (Job(kind, stage, microbatch) for kind in "FIW")
            self.model.add(self.start[backward] >= self.end[forward])
            self.model.add(self.start[weights] >= self.end[backward])
            if stage < last:
                transfer = self.shop.transfer_between(stage, stage + 1)
                self.model.add(self.start[Job("F", stage + 1, microbatch)] >= self.end[forward] + transfer)
                self.model.add(self.start[backward] >= self.end[Job("I", stage + 1, microbatch)] + transfer)
        for job in self.start:
            literals = [literal for pair, kinds in self.pairs.items() if job in pair for literal in kinds.values()]
            self.model.add_at_most_one(literals)

    def _run_in_order(self) -> None:
        """See the module's documentation. A W that is not there may stand anywhere after its backward, and takes no time."""
        for stage, (one, other) in product(range(self.case.stages), pairwise(range(self.case.microbatches))):
            for kind in "FIW":
                self.model.add(self.start[Job(kind, stage, other)] >= self.end[Job(kind, stage, one)])

    def _value(self) -> None:
        self.value = self.model.new_int_var(0, self.most, "value")
        for rank in range(self.case.ranks):
            self.model.add(self.value >= self.work[rank] + (self._earliest(rank) if self.in_order else 0))
            lasts = self._jobs(rank, "IW")
            if self.case.objective == "makespan":
                for job in lasts:
                    self.model.add(self.value >= self.end[job])
            else:
                for first, job in product(self._jobs(rank, "F"), lasts):
                    self.model.add(self.value >= self.end[job] - self.start[first])
        if self.case.objective == "span":
            self._start_at_once()
            for one, other in pairwise(range(self.case.microbatches)):
                self.model.add(self.start[Job("F", 0, other)] >= self.end[Job("F", 0, one)])
        self.model.minimize(self.value)

    def _earliest(self, rank: int) -> int:
        """When the first microbatch reaches a rank at the earliest."""
        first = self.case.stages_on(rank)[0]
        return sum(self.shop.times["F"][s] + self.shop.transfer_between(s, s + 1) for s in range(first))

    # What ranks hold

    def _hold(self, rank: int) -> None:
        """After everything that adds to it, a rank holds no more than it may."""
        cap = self.shop.caps[rank]
        stages = self.case.stages_on(rank)
        most = self.case.microbatches * sum(max(self.shop.activation[stage], self.shop.kept[stage]) for stage in stages)
        if cap is None or most <= cap:
            return
        for job in self._jobs(rank, "FI"):
            if change(self.shop, job) > 0 and not (job.kind == "I" and not self.case.split):
                level = self.model.add(sum(self._held_after(job, rank)) <= cap)
                if job.kind == "I":
                    level.only_enforce_if(self.split[job.stage, job.microbatch])

    def _held_after(self, job: Job, rank: int) -> Iterator[Any]:
        """What every microbatch of the rank's stages holds right after a job that adds."""
        for stage, microbatch in self.cells:
            if self.case.rank_of[stage] != rank:
                continue
            forward, backward, weights = (Job(kind, stage, microbatch) for kind in "FIW")
            begun = True if forward == job else self.precedes(forward, job)
            back = True if backward == job else self.precedes(backward, job)
            yield self.shop.activation[stage] * (begun - back)
            if self.shop.kept[stage] and back is not False:
                yield self.shop.kept[stage] * self._waits(stage, microbatch, back, self.precedes(weights, job))

    def _waits(self, stage: int, microbatch: int, back: Any, done: Any) -> Any:
        """Whether a microbatch is between I and W: at least where it is so; sums that include it are only bounded above."""
        return self._all([self.split[stage, microbatch], back, _negated(done)])

    def precedes(self, one: Job, other: Job) -> Any:
        """Whether a job is before another of its rank, in a pair the forward before the backward."""
        if self.leads_to(one, other):
            return True
        if self.leads_to(other, one):
            return False
        if (one, other) not in self._precedes:
            literal = self.model.new_bool_var(f"{one}before{other}")
            self._precedes[one, other], self._precedes[other, one] = literal, ~literal
            for first, second, holds in ((one, other, literal), (other, one, ~literal)):
                there = [self.split[job.stage, job.microbatch] for job in (first, second) if job.kind == "W"]
                apart = [~pair for pair in self.pairs.get((first, second), {}).values()]
                self.model.add(self.start[second] >= self.end[first]).only_enforce_if([holds, *there, *apart])
                for pair in self.pairs.get((first, second), {}).values():
                    self.model.add_implication(pair, holds)
        return self._precedes[one, other]

    def leads_to(self, one: Job, other: Job) -> bool:
        """Whether a job always comes before another; for a W only if it is there."""
        steps = {"F": 0, "I": 1, "W": 2}
        if one == other or steps[one.kind] > steps[other.kind]:
            return False
        in_order = one.microbatch <= other.microbatch if self.in_order else one.microbatch == other.microbatch
        if one.kind == other.kind == "F":
            return in_order and one.stage <= other.stage
        if one.kind == "F":
            return in_order
        if one.kind == other.kind == "W":
            return in_order and one.stage == other.stage
        return in_order and one.stage >= other.stage

    # As soon as possible

    def _start_at_once(self) -> None:
        """Every job starts at 0, or as something that it waits for ends: its rank's last job, or its input."""
        for rank in range(self.case.ranks):
            jobs = self._jobs(rank, "FIW")
            reasons = {job: list(self._reasons(job, jobs)) for job in jobs}
            for job in jobs:
                together = [literal for pair, kinds in self.pairs.items() if job in pair for literal in kinds.values()]
                absent = [_negated(self.split[job.stage, job.microbatch])] if job.kind == "W" else []
                if not any(literal is True for literal in absent):
                    self.model.add_bool_or([*reasons[job], *together, *absent])
            for (forward, backward), kinds in self.pairs.items():
                if forward in reasons:
                    for literal in kinds.values():
                        self.model.add_bool_or([~literal, *reasons[forward], *reasons[backward]])

    def _reasons(self, job: Job, jobs: Sequence[Job]) -> Iterator[Any]:
        kind, stage, microbatch = job
        ends: list[tuple[Any, Any]] = [(0, True)] if kind == "F" and stage == 0 else []
        for other in jobs:
            there = self.split[other.stage, other.microbatch] if other.kind == "W" else True
            ends += [(self.end[other], there)] * (other != job)
        source = stage - 1 if kind == "F" else stage + 1
        if kind != "W" and 0 <= source < self.case.stages:
            ends.append((self.end[Job(kind, source, microbatch)] + self.shop.transfer_between(source, stage), True))
        for end, present in ends:
            if present is not False:
                reason = self.model.new_bool_var("")
                self.model.add(self.start[job] == end).only_enforce_if(reason)
                if present is not True:
                    self.model.add_implication(reason, present)
                yield reason

    # Literals

    def _all(self, literals: Sequence[Any]) -> Any:
        """A literal that holds if all do, and only then."""
        if any(literal is False for literal in literals):
            return False
        rest = [literal for literal in literals if literal is not True]
        if len(rest) < 2:
            return rest[0] if rest else True
        both = self.model.new_bool_var("")
        self.model.add_bool_or([both, *(_negated(literal) for literal in rest)])
        for literal in rest:
            self.model.add_implication(both, literal)
        return both

    def _any(self, literals: Sequence[Any]) -> Any:
        return _negated(self._all([_negated(literal) for literal in literals]))

    # The answer

    def rows(self, solver: Any) -> Rows:
        """The turns of every rank in the order of their starts."""
        rows: list[list[Turn]] = []
        for rank in range(self.case.ranks):
            turns: dict[Job, Turn] = {job: (self._named(job, solver),) for job in self._jobs(rank, "FIW")}
            for job in self._jobs(rank, "W"):
                if not self._is_split(job, solver):
                    del turns[job]
            for (forward, backward), kinds in self.pairs.items():
                if forward in turns and any(solver.boolean_value(literal) for literal in kinds.values()):
                    turns[forward] += turns.pop(backward)
            rows.append([turns[job] for job in sorted(turns, key=lambda job: solver.value(self.start[job]))])
        return rows

    def _named(self, job: Job, solver: Any) -> Job:
        return job._replace(kind="B") if job.kind == "I" and not self._is_split(job, solver) else job

    def _is_split(self, job: Job, solver: Any) -> bool:
        split = self.split[job.stage, job.microbatch]
        return split if isinstance(split, bool) else bool(solver.boolean_value(split))


def _negated(literal: Any) -> Any:
    return (not literal) if isinstance(literal, bool) else ~literal
