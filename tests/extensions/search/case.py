"""A search problem in exact numbers: for pipeplan as settings or a command line, for the independent models as integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, lcm
from typing import Any

from pipeplan.model import Objective

Numbers = tuple[Fraction, ...]

SLACK = Fraction(1, 10**9)
"""The share of a limit by which rounded sums may pass it."""


def numbers(*values: float | str | Fraction) -> Numbers:
    """Exact numbers: 1.2 is six fifths."""
    return tuple(value if isinstance(value, Fraction) else Fraction(str(value)) for value in values)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything that a search is told, per stage; ``None`` is what nobody gives.

    ``inputs`` and ``weights`` are the times of I and W; ``kept`` is the part of the activation that only W frees.
    ``pairs[kind][forward][backward]`` is what stages take together, instead of ``overlap``, with B and with I, and
    ``pair_settings`` says so to pipeplan.
    """

    placement: str
    rank_of: tuple[int, ...]
    microbatches: int
    forward: Numbers
    backward: Numbers
    inputs: Numbers
    weights: Numbers
    overlap: Numbers | None = None
    pairs: Mapping[str, tuple[Numbers, ...]] | None = None
    transfer: Fraction = Fraction(0)
    activation: Numbers | None = None
    kept: Numbers | None = None
    static: Numbers | None = None
    limits: Numbers | None = None
    in_activations: bool = True
    objective: Objective = "makespan"
    split: bool = True
    pair_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        return max(self.rank_of) + 1

    @property
    def stages(self) -> int:
        return len(self.rank_of)

    @property
    def chunks(self) -> int | None:
        """Chunks a rank, for placements that have a name."""
        return None if "," in self.placement else self.stages // self.ranks

    def stages_on(self, rank: int) -> list[int]:
        return [stage for stage, holder in enumerate(self.rank_of) if holder == rank]

    def held(self) -> tuple[Numbers, Numbers]:
        """What a microbatch holds on each stage, and the part that only W frees, in the unit of the limits."""
        if not self.in_activations:
            assert self.activation is not None
            return self.activation, self.activation if self.kept is None else self.kept
        share = tuple(Fraction(1, self.rank_of.count(rank)) for rank in self.rank_of)
        if self.activation is None or self.kept is None:
            return share, share
        parts = (kept / whole if whole else Fraction(1) for kept, whole in zip(self.kept, self.activation, strict=True))
        return share, tuple(one * part for one, part in zip(share, parts, strict=True))

    def room(self) -> Numbers | None:
        """What each rank may hold beside what it holds throughout; None without limits."""
        if self.limits is None or self.in_activations or self.static is None:
            return self.limits
        static = [sum(self.static[stage] for stage in self.stages_on(rank)) for rank in range(self.ranks)]
        return tuple(limit - fixed for limit, fixed in zip(self.limits, static, strict=True))

    def settings(self) -> dict[str, Any]:
        """The same as keywords of pipeplan's functions."""
        lists = {name: tuple(map(float, value)) for name, value in self._lists().items() if value is not None}
        given = {**self._shape(), **lists, **self._rest(), **self.pair_settings}
        return {name: value for name, value in given.items() if value is not None}

    def options(self, **budget: Any) -> dict[str, Any]:
        """The same as options of a search."""
        chosen = {"placement": self.placement, "objective": self.objective, "leave": () if self.split else "split"}
        return chosen | {"workers": 1} | budget

    def command(self) -> str:
        """The same as a command line."""
        words = ["pipeplan search", f"--placement {self.placement}"]
        words += [f"--{name} {value}" for name, value in self._shape().items() if value is not None]
        for name, values in {**self._lists(), **self._rest()}.items():
            if values:
                text = ",".join(map(_text, values)) if isinstance(values, tuple) else _text(values)
                words.append(f"--{name.replace('_', '-')} {text}")
        words += [f"--objective {self.objective}"] * (self.objective != "makespan")
        words += [f"with {dict(self.pair_settings)}"] * bool(self.pair_settings)
        return " ".join(words + ["--leave split"] * (not self.split))

    def _shape(self) -> dict[str, Any]:
        return {"ranks": self.ranks, "microbatches": self.microbatches, "chunks": self.chunks}

    def _lists(self) -> dict[str, Numbers | None]:
        return {
            "forward_times": self.forward,
            "backward_times": self.backward,
            "backward_input_times": self.inputs,
            "backward_weight_times": self.weights,
            "overlap_times": self.overlap,
            "activation_bytes": self.activation,
            "weight_activation_bytes": self.kept,
            "static_bytes": self.static,
        }

    def _rest(self) -> dict[str, Any]:
        unit = "act" if self.in_activations else ""
        limits = None if self.limits is None else tuple(f"{_text(limit)}{unit}" for limit in self.limits)
        return {"p2p_time": float(self.transfer), "memory_limit": limits}


def _text(value: Any) -> str:
    return f"{float(value):.15g}" if isinstance(value, int | float | Fraction) else str(value)


@dataclass(frozen=True)
class WholeCase:
    """A case in whole numbers: times in units of ``unit``, memory in a unit of its own.

    ``times[kind][stage]`` for the kinds F, B, I, W; ``caps[rank]`` is None where nothing is limited.
    """

    case: Case
    unit: Fraction
    times: dict[str, tuple[int, ...]]
    pairs: dict[str, tuple[tuple[int, ...], ...]] | None
    transfer: int
    activation: tuple[int, ...]
    kept: tuple[int, ...]
    caps: tuple[int | None, ...]

    def pair_time(self, forward: int, kind: str, backward: int) -> int:
        """How long a forward of one stage takes together with a backward (B or I) of another."""
        alone = self.times["F"][forward], self.times[kind][backward]
        return sum(alone) if self.pairs is None else self.pairs[kind][forward][backward]

    def transfer_between(self, stage: int, other: int) -> int:
        ranks = self.case.rank_of
        return self.transfer if ranks[stage] != ranks[other] else 0

    @property
    def horizon(self) -> int:
        """Long enough for everything one after the other."""
        each = zip(*(self.times[kind] for kind in "FBIW"), strict=True)
        work = sum(forward + max(full, inputs + weights) for forward, full, inputs, weights in each)
        together = sum(max(row) for rows in (self.pairs or {}).values() for row in rows)
        return int(self.case.microbatches * (work + together + 2 * self.transfer * self.case.stages))


def whole(case: Case) -> WholeCase:
    """The case in whole numbers; nothing is rounded, except that a limit gets its slack and loses what no sum can fill."""
    times = {"F": case.forward, "B": case.backward, "I": case.inputs, "W": case.weights}
    pairs = case.pairs
    if case.overlap is not None:
        pairs = {
            kind: tuple(
                tuple(max(together, forward, backward) for backward in times[kind])
                for together, forward in zip(case.overlap, case.forward, strict=True)
            )
            for kind in "BI"
        }
    of_pairs = {kind: list(rows) for kind, rows in (pairs or {}).items()}
    per_time = _common([*times.values(), *(row for rows in of_pairs.values() for row in rows), (case.transfer,)])
    activation, kept = case.held() if case.limits is not None else (numbers(0) * case.stages,) * 2
    per_size = _common([activation, kept])
    room = case.room()
    return WholeCase(
        case=case,
        unit=Fraction(1, per_time),
        times={kind: _times(values, per_time) for kind, values in times.items()},
        pairs={kind: tuple(_times(row, per_time) for row in rows) for kind, rows in of_pairs.items()} or None,
        transfer=int(case.transfer * per_time),
        activation=_times(activation, per_size),
        kept=_times(kept, per_size),
        caps=(None,) * case.ranks if room is None else tuple(floor(cap * (1 + SLACK) * per_size) for cap in room),
    )


def _common(groups: Iterable[Sequence[Fraction]]) -> int:
    """What all numbers must be multiplied by to be whole."""
    return lcm(*(value.denominator for group in groups for value in group))


def _times(values: Numbers, factor: int) -> tuple[int, ...]:
    return tuple(int(value * factor) for value in values)
