"""Training logs: step times, memory and timers in the lines that trainers print.

The lines are those of Megatron-LM (``training_log``, ``report_memory``, ``Timers.log``), Megatron Bridge
(``train_utils.py``), NeMo's progress printer, torchtitan (``MetricsProcessor.log``) and NeMo AutoModel (``train_ft.py``).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.files import GIBIBYTE, MEBIBYTE, read_text
from pipeplan.model import counted, shortened

LARGEST, LONGEST = 256 * MEBIBYTE, 4000
"""Maximum size of a log in bytes, and number of characters of a line that are read."""

SETTLED = 1.2
"""Ratio to the median of the later steps above which a leading step is part of the warm-up."""

STEPS = {
    "Megatron-LM": (
        r"iteration\s+(?P<step>\d+)\s*/\s*\d+ \|.*?elapsed time per iteration \(ms\):\s*(?P<ms>[\d.]+)"
        r"(?:.*?(?:throughput|compute) per GPU \(TFLOP/s/GPU\):\s*(?P<tflops>[\d.]+))?"
        r"(?:.*?global batch size:\s*(?P<batch>\d+))?"
    ),
    "NeMo": (
        r"iteration (?P<step>\d+)/\d+ \|.*?global_batch_size: (?P<batch>\d+).*?train_step_timing in s: (?P<s>[\d.]+)"
        r"(?:.*?TFLOPS_per_GPU: (?P<tflops>[\d.]+))?"
    ),
    "torchtitan": r"step:\s*(?P<step>\d+)\s.*?GiB.*?(?:tps|wps):\s*(?P<tps>[\d,]+)(?:\s+tflops:\s*(?P<tflops>[\d.,]+))?",
    "NeMo AutoModel": r"step (?P<step>\d+) \| epoch .*?\| tps [\d.]+\((?P<tps>[\d.]+)/gpu\)",
    "Megatron Bridge": r"Step Time : (?P<s>[\d.]+)s GPU utilization: (?P<tflops>[\d.]+)",
}
"""Line of a step by trainer: its number, milliseconds, seconds or tokens per second and GPU, TFLOP/s per GPU, sequences. The
first trainer with such lines counts: Bridge prints its own beside Megatron's."""

_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0}
"""Seconds of the units of a duration."""

_NUMBER = r"([\d.,]+)"
_MEMORY = (
    re.compile(rf"max[ _-]?(?:memory_)?allocated\S*?: *{_NUMBER}|\| mem {_NUMBER} GiB"),
    re.compile(rf"max[ _-]?(?:memory_)?reserved\S*?: *{_NUMBER}|\smemory: *{_NUMBER}GiB"),
)
_TIMER = re.compile(rf"([a-z][\w/-]+) \.{{2,}}: (?:\({_NUMBER}, {_NUMBER}\)|{_NUMBER})")
_EXPECTED = (
    "expected the lines of Megatron-LM ('iteration ... | elapsed time per iteration (ms): ...'), Megatron Bridge, NeMo, "
    "torchtitan ('step: ... tps: ...') or NeMo AutoModel; pass a measured step as a duration, such as 14.25s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """Logged step: seconds, or tokens per second and GPU; TFLOP/s per GPU and sequences; 0: not logged.

    ``timers`` are the least and the largest seconds over the ranks, by name.
    """

    seconds: float
    tokens: float = 0.0
    tflops: float = 0.0
    batch: int = 0
    timers: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Measured steps of a run: those that count, and the number of those of the warm-up and of another batch.

    ``source`` is the name of the log, ``trainer`` what wrote it (empty: a duration), ``memory`` the peaks in GiB by global
    rank, allocated and reserved; rank -1 if lines do not name it.
    """

    source: str
    steps: Sequence[LoggedStep]
    trainer: str = ""
    warm_up: int = 0
    other_batches: int = 0
    memory: tuple[Mapping[int, float], Mapping[int, float]] = ({}, {})

    def seconds(self, configuration: Configuration) -> list[float]:
        """Return the step times in seconds; tokens per second need the batch of the configuration."""
        tokens = configuration.global_batch * configuration.sequence / configuration.gpus
        return [step.seconds or tokens / step.tokens for step in self.steps]

    def timers(self) -> dict[str, tuple[float, float]]:
        """Return the median least and largest seconds of each timer."""
        pairs = defaultdict(list)
        for step in self.steps:
            for name, pair in step.timers.items():
                pairs[name].append(pair)
        return {name: (median(low for low, _ in own), median(high for _, high in own)) for name, own in pairs.items()}


def measured_as(value: str | float, configuration: Configuration, folder: Path = Path()) -> Measurement:
    """Return a measurement from a duration in seconds (``14.25s``), or from the log of a configuration's run.

    The first logged step after each start, and those after it that are :data:`SETTLED` times as long as the later ones,
    are warm-up. Steps with another batch than the configuration's are left out.

    Raises InputError for a file that cannot be read, is no known trainer's log, is of another cluster, or has no settled
    step with the configuration's batch.
    """
    duration, path = re.fullmatch(r"\s*([\d.]+)\s*(s|ms|min|)\s*", str(value)), folder / str(value)
    if duration is not None and not path.is_file() and (seconds := _float(duration[1]) * _SECONDS[duration[2]]):
        return Measurement(source=f"{seconds:g} s", steps=[LoggedStep(seconds=seconds)])
    if not (isinstance(value, str | os.PathLike) and str(value).strip() and os.path.exists(path)):
        raise InputError(
            f"cannot read the measured step '{shortened(str(value), 60)}': no such file, and no duration above 0 such as "
            "14.25s, 14250ms or 2min",
            field="measured",
        )
    try:
        trainer, starts, memory = _read(read_text(path, limit=LARGEST, what="training log", errors="replace"))
    except FormatError as error:
        raise FormatError(f"{error}; {_EXPECTED}", field="measured") from None
    batch, last = configuration.global_batch, max((*memory[0], *memory[1]), default=0)
    own = [[step for step in steps if step.batch in (0, batch)] for steps in starts]
    settled = [step for steps in own for step in _settled(steps, configuration)]
    logged, total = sorted({step.batch for steps in starts for step in steps}), sum(map(len, own))
    gpus, sizes = configuration.gpus, ", ".join(map(str, logged))
    faults = (
        (not starts, f"has no line with a step time: {_EXPECTED}"),
        (last >= gpus, f"has rank {last}, but the configuration has {gpus} GPUs: pass the run's own configuration"),
        (not total, f"has steps of {sizes} sequences, but global_batch is {batch}: set it to the log's"),
        (not settled, f"has only {counted(total, 'logged step')} of warm-up: log 10 or more, each (--log-interval 1)"),
    )
    for holds, fault in faults:
        if holds:
            raise InputError(f"{path.name} {fault}", field="measured")
    return Measurement(
        source=path.name,
        trainer=trainer,
        steps=settled,
        warm_up=total - len(settled),
        other_batches=sum(map(len, starts)) - total,
        memory=memory,
    )


def _settled(steps: Sequence[LoggedStep], configuration: Configuration) -> Sequence[LoggedStep]:
    """Return the steps of one start without its warm-up."""
    times, first = Measurement(source="", steps=steps).seconds(configuration), 1
    while first < len(times) - 2 and times[first] > SETTLED * median(times[first + 1 :]):
        first += 1
    return steps[first:]


def _read(text: str) -> tuple[str, list[list[LoggedStep]], tuple[dict[int, float], dict[int, float]]]:
    """Return the trainer of a log, its steps by start, and the peak memory of its ranks: allocated and reserved, in GiB."""
    found: dict[str, list[tuple[int, LoggedStep]]] = {trainer: [] for trainer in STEPS}
    memory: tuple[dict[int, float], dict[int, float]] = ({}, {})
    last: LoggedStep | None = None
    for line in (whole[:LONGEST] for whole in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()):
        # The timers of a step follow its line.
        if last is not None and "..:" in line and (timer := _TIMER.search(line)):
            low, high, only = (_float(value) / 1e3 for value in timer.groups()[1:])
            last.timers[timer[1]] = (low or only, high or only)
        for trainer, pattern in STEPS.items():
            if match := re.search(pattern, line):
                parts = defaultdict(str, match.groupdict(""))
                step = LoggedStep(
                    seconds=_float(parts["s"]) + _float(parts["ms"]) / 1e3,
                    tokens=_float(parts["tps"]),
                    tflops=_float(parts["tflops"]),
                    batch=int(parts["batch"] or 0),
                )
                if step.seconds or step.tokens:
                    found[trainer].append((int(parts["step"] or len(found[trainer])), step))
                    last = step if trainer != "Megatron Bridge" else last
        for peak, held in zip(_MEMORY, memory, strict=True):
            if match := peak.search(line):
                # Megatron counts MiB, Bridge GB, NeMo bytes, torchtitan and AutoModel GiB.
                unit = MEBIBYTE if "(MB)" in line else 1e9 if "gigabytes" in match[0] else 1
                named = re.search(r"\[rank ?(\d+)\]", line, re.IGNORECASE)
                rank = int(named[1]) if named else -1
                held[rank] = max(held.get(rank, 0.0), _float(match[2]) or _float(match[1]) * unit / GIBIBYTE)
    trainer = next((trainer for trainer, steps in found.items() if steps), "")
    return trainer, list(_by_start(found.get(trainer, ()))), memory


def _by_start(numbered: Sequence[tuple[int, LoggedStep]]) -> Iterator[list[LoggedStep]]:
    """Yield the steps of each start of a run, once each: several ranks may log the same step."""
    start: list[LoggedStep] = []
    before = last = -1
    for number, step in numbered:
        if start and number in (before, last):
            continue
        # A lower number is a restart from a checkpoint; ranks are at most one step apart.
        if start and number < last:
            yield start
            start = []
        before, last = (last, number) if start else (-1, number)
        start.append(step)
    if start:
        yield start


def _float(text: str | None) -> float:
    digits = re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", (text or "").replace(",", ""))
    return float(digits[0]) if digits else 0.0
