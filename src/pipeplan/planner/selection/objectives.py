"""What is minimised, and which numbers of GPUs it is minimised over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeplan.errors import InputError
from pipeplan.hardware import Cluster
from pipeplan.planner.planned import Objective
from pipeplan.planner.selection.question import Question
from pipeplan.planner.selection.trials import part_of

Value = Callable[[Question, float], float]
"""Of a question (which says the GPUs) and seconds of a step; it grows with the seconds."""

TIE = 1e-6
"""Weight of the step's time beside the number of GPUs: it decides among equal numbers only."""

LATE = 1e6
"""Factor on a step that misses the deadline: more than any number of GPUs."""


def value_of(objective: Objective, deadline: float | None) -> Value:
    """What an objective minimises.

    ``step-time`` and ``tokens`` a second are the same order where the batch is given: seconds of a step. ``cost`` is seconds
    of a step times GPUs, whatever a GPU's hour costs. ``gpus`` is the number of GPUs where the step meets the deadline, the
    quicker of equal ones first.

    Raises
    ------
    InputError
        For ``gpus`` without a deadline, a deadline without ``gpus``, or one that is not more than 0.
    """
    if (objective == "gpus") != (deadline is not None):
        rule = "the objective gpus needs a deadline: seconds that a step may take; for N tokens in T seconds that is "
        raise InputError(f"{rule}T x batch x sequence / N; no other objective takes one", field="deadline")
    if objective == "gpus":
        assert deadline is not None
        if not deadline > 0:
            raise InputError(f"a deadline must be more than 0 seconds, not {deadline:g}", field="deadline")
        return lambda question, seconds: (
            question.gpus * (1 + TIE * seconds / deadline) if seconds <= deadline else LATE * seconds / deadline
        )
    if objective == "cost":
        return lambda question, seconds: question.gpus * seconds
    return lambda _, seconds: seconds


def parts(cluster: Cluster, objective: Objective) -> list[Cluster]:
    """The cluster, or all parts of it that an objective compares: the smallest first.

    Those are a node's GPUs halved as often as they can be, and 1, 2, 3, 4, 6, 8, 12 ... nodes up to all.
    """
    if objective in {"step-time", "tokens"} or cluster.gpus < 1:
        return [cluster]
    counts = {base << shift for base in (1, 3) for shift in range(cluster.nodes.bit_length())}
    nodes = sorted({count for count in counts if count <= cluster.nodes} | {cluster.nodes})
    halves, inner = [], cluster.per_node
    while inner % 2 == 0:
        inner //= 2
        halves.append(part_of(cluster, 1, inner))
    whole = [part_of(cluster, count, cluster.per_node) for count in nodes]
    return [*reversed(halves), *whole]


def with_cluster(question: Question, cluster: Cluster) -> Question:
    """The same question of a part of the cluster."""
    return replace(question, cluster=cluster)
