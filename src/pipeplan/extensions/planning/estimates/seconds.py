"""Seconds of work on a cluster: by kind of work, with hidden communication and launch overhead of the host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np

from pipeplan.extensions.planning.estimates.properties import CORES, Software
from pipeplan.extensions.planning.hardware import (
    Cluster,
    attention_time,
    collective_time,
    gemm_time,
    grouped_gemm_time,
    memory_time,
)
from pipeplan.extensions.planning.workload import (
    AttentionCore,
    Collective,
    Execution,
    Gemm,
    Group,
    GroupedGemm,
    MemoryPass,
    Work,
)
from pipeplan.model import Floats, LayerKind

KINDS = ("gemm", "grouped_gemm", "attention", "memory", "host", "tensor", "context", "expert", "data")
"""Kinds of time within an op: four kinds of kernels, waiting for kernel launches, and exposed communication of four
groups."""

_COLUMN = {kind: column for column, kind in enumerate(KINDS)}
_GROUP_KIND = {"tensor": "tensor", "expert_tensor": "tensor", "context": "context", "expert": "expert"}


class TimeFactors(Protocol):
    """Factors that correct analytic times for one machine (``Calibration``)."""

    def factor(self, kind: str) -> float:
        """Return measured over analytic time of a kind of work; 1 if it was not measured."""


class _Uncalibrated:
    def factor(self, kind: str) -> float:
        return 1.0


UNCALIBRATED: TimeFactors = _Uncalibrated()
"""Analytic times without correction."""


@dataclass(frozen=True, slots=True)
class WorkMachine:
    """GPUs and links, the trainer's software, how it splits a layer, and factors of a calibration: what times depend on."""

    cluster: Cluster
    software: Software
    execution: Execution
    factors: TimeFactors = UNCALIBRATED

    def group(self, group: Group) -> tuple[int, int]:
        """Return the number of ranks of a group and the distance between them in GPUs.

        Tensor groups are innermost, then context, then data; expert groups are formed from these ranks.
        """
        run = self.execution
        return {
            "tensor": (run.tensor, 1),
            "context": (run.context, run.tensor),
            "expert": (run.expert, run.expert_tensor),
            "expert_tensor": (run.expert_tensor, 1),
        }[group]


def work_seconds(machine: WorkMachine, works: Iterable[Work], kind: LayerKind) -> Floats:
    """Return the seconds of one op of a layer by kind of work; shape (kinds,).

    Communication that the software overlaps with a product or an attention core counts only as far as it is longer than what
    hides it. Exchanges with experts count in full: a pair of ops hides them (``segments``). If kernels are shorter than
    their launches, the rest is ``host``.
    """
    seconds = np.zeros(len(KINDS))
    hidden: dict[str, float] = {}
    kernels = 0
    for work in works:
        if isinstance(work, Collective):
            column = _COLUMN[_GROUP_KIND[work.group]]
            time = collective_seconds(machine, work)
            hider = _GROUP_KIND[work.group]
            # Trainers overlap the tensor group's communication only with sequence parallelism, which splits it by rows.
            splits = hider != "tensor" or machine.execution.sequence_parallel
            if work.beside not in ("", "batch") and splits and hider in machine.software.hides:
                # A product starts only with the first rank's share of its input; the other shares are hidden.
                first = time / machine.group(work.group)[0] if work.beside == "gemm" else 0.0
                seconds[column] += first
                time -= first
                overlapped = time * (machine.software.tensor_share if _GROUP_KIND[work.group] == "tensor" else 1.0)
                seconds[column] += time - overlapped
                hidden[f"{work.beside}:{column}"] = hidden.get(f"{work.beside}:{column}", 0.0) + overlapped
            else:
                seconds[column] += time
            kernels += 1
        else:
            name, time, launched = _kernel_seconds(machine, work, kind)
            seconds[_COLUMN[name]] += time
            kernels += launched
    # Multiprocessors reserved for communication are missing from the kernels that need all of them.
    for name in _COMPUTING:
        seconds[_COLUMN[name]] /= 1.0 - machine.software.reserved
    _expose(seconds, hidden)
    # The host launches ahead: only what the launches take beyond all kernels is waiting time.
    if not machine.software.graphs:
        slower = GRACE if machine.cluster.gpu.host_bandwidth >= GRACE_LINK else 1.0
        launches = kernels * machine.software.launch * slower
        seconds[_COLUMN["host"]] = max(0.0, launches - float(seconds.sum()))
    return seconds


_COMPUTING = ("gemm", "grouped_gemm", "attention")
"""Kinds of work whose time depends on the number of multiprocessors; memory passes need only a few."""

GRACE_LINK = 200e9
"""Bandwidth to the host, bytes/s each way, from which the host is a Grace processor (NVLink-C2C)."""

GRACE = 2.0
"""Time of a launch on a Grace processor relative to an x86 one. In NVIDIA/TransformerEngine issue 2053, ``Linear`` takes 2.5
times as long; recipes for such hosts capture parts of layers in graphs."""

# Kinds of work that hide each sort of overlapped communication (``Collective.beside``).
_BESIDE = {"gemm": ("gemm", "grouped_gemm"), "core": ("attention",)}


def _expose(seconds: Floats, hidden: dict[str, float]) -> None:
    """Add the hidden communication that exceeds the computation it overlaps with, and the slowdown of that computation."""
    for key, time in hidden.items():
        beside, column = key.split(":")
        cover = sum(float(seconds[_COLUMN[kind]]) for kind in _BESIDE[beside])
        seconds[int(column)] += exposed(time, cover)


SHARE = 0.15
"""Fraction of the multiprocessors that communication takes while it overlaps computation. Source: ``processor_usage`` of
NVLink in Calculon's A100 system file (calculon-ai/calculon)."""


def exposed(communication: float, computation: float) -> float:
    """Return the time that overlapped communication adds to the computation it overlaps with."""
    # While both run, computation loses SHARE of the multiprocessors; afterwards communication is exposed.
    together = min(communication, computation)
    return communication - together + SHARE * together


def _kernel_seconds(machine: WorkMachine, work: Work, kind: LayerKind) -> tuple[str, float, int]:
    gpu, factor = machine.cluster.gpu, machine.factors.factor
    # A calibrated factor of head or loss replaces the factors of their kernels.
    end = factor(kind) if kind in ("head", "loss") else 1.0
    match work:
        case Gemm():
            time = gemm_time(
                gpu,
                work.rows,
                work.columns,
                work.inner,
                work.precision,
                copies=work.copies,
                accumulates=work.accumulates,
            )
            return "gemm", time * (end if end != 1.0 else factor("gemm")), 1
        case GroupedGemm():
            time = grouped_gemm_time(
                gpu,
                work.groups,
                work.rows,
                work.columns,
                work.inner,
                precision=work.precision,
                accumulates=work.accumulates,
                weight_gradient=work.weight_gradient,
            )
            launches = work.groups * machine.software.expert_launch
            return "grouped_gemm", time * factor("grouped_gemm") + launches, 1
        case AttentionCore():
            time = attention_time(
                gpu,
                queries=work.queries,
                keys=work.keys,
                heads=work.heads,
                kv_heads=work.kv_heads,
                score_dim=work.score_dim,
                value_dim=work.value_dim,
                fused=work.fused,
                backward=work.backward,
                gathered=work.gathered,
            )
            return "attention", time * factor("attention") / _core_rate(machine, work), 1 + work.backward
        case MemoryPass():
            time = memory_time(gpu, work.bytes, work.kernels, work.flops)
            return "memory", time * (end if end != 1.0 else factor("memory")), work.kernels
        case Collective():
            raise TypeError(work)


def _ranks_reached(ranks: int, copies: int) -> float:
    """Return the expected number of ranks that hold at least one of a token's experts, for experts chosen at random.

    An expert is on a given rank with probability 1 / ranks, so a rank is missed by all copies with (1 - 1 / ranks) **
    copies.
    """
    return ranks * (1.0 - (1.0 - 1.0 / ranks) ** copies)


def _core_rate(machine: WorkMachine, work: AttentionCore) -> float:
    """Return the rate of the software's fused attention relative to the best kernels of the GPU's generation."""
    if not work.fused:
        return 1.0
    core = CORES[machine.software.core]
    # Libraries without kernels for Hopper run their Ampere kernels there; on Blackwell, PyTorch calls cuDNN instead.
    ported = core.ported if machine.cluster.gpu.generation in _PORTED else 1.0
    return (core.backward if work.backward else core.forward) * ported


_PORTED = ("hopper", "cdna3", "cdna4")


def collective_seconds(machine: WorkMachine, work: Collective) -> float:
    """Return the seconds of a collective if nothing hides it."""
    ranks, stride = machine.group(work.group)
    size, nodes, copies = work.bytes, None, work.copies
    # DeepEP-like dispatch sends a token once to each rank that holds any of its experts, not once per expert.
    if work.operation == "all_to_all" and machine.software.dispatch != "experts":
        reached, nodes = _ranks_reached(ranks, work.copies), work.nodes_a_token or work.copies
        if machine.software.dispatch == "neighbours":
            reached = max(1.0, work.copies / work.experts)
            nodes = max(1, ceil(reached * stride / machine.cluster.joined))
        size, copies = size * reached / work.copies, max(1, round(reached))
    time = collective_time(
        machine.cluster, work.operation, size, ranks, stride, steps=work.steps, nodes_a_token=nodes, copies=copies
    )
    # DTensor shards the second dimension; its collectives gather and scatter the first one, with a copy in between.
    if machine.software.framework == "pytorch" and work.operation in ("all_gather", "reduce_scatter"):
        time += memory_time(machine.cluster.gpu, 2 * work.bytes)
    return time * collective_factor(machine.factors, machine.cluster, ranks, stride)


def collective_factor(factors: TimeFactors, cluster: Cluster, ranks: int, stride: int) -> float:
    """Return the factor of the collectives of a group: those between nodes have one of their own."""
    return factors.factor("network" if ranks * stride > cluster.joined else "collective")
