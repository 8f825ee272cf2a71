"""Questions that tests of plans share."""

from typing import Any

from pipeplan.hardware import cluster
from pipeplan.planner.selection.choices import read_fixed
from pipeplan.planner.selection.question import Question, default_limit
from pipeplan.workload import model


def question(name: str = "llama3.2-1b", machines: str = "h100-sxm:8x1", **changes: Any) -> Question:
    """A small one, but for what is changed; ``fix`` as a plan takes it."""
    fixed = read_fixed(changes.pop("fix", {}))
    machine = cluster(machines)
    given = {"global_batch": 16, "sequence": 4096, "memory_limit": default_limit(machine)} | changes
    return Question(model=model(name), cluster=machine, fixed=fixed, **given)
