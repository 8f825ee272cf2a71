"""Requests that tests of plans share."""

from dataclasses import fields
from typing import Any

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.choice.legality import RULES, Draft, Rule
from pipeplan.extensions.planning.choice.request import PlanRequest, read_fixed
from pipeplan.extensions.planning.fitting import default_limit
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import model


def request(name: str = "llama3.2-1b", machines: str = "h100-sxm:8x1", **changes: Any) -> PlanRequest:
    """A small one, but for what is changed; ``fix`` as a plan takes it."""
    fixed = read_fixed(changes.pop("fix", {}), plan_trainers())
    machine = cluster(machines)
    settings = {"global_batch": 16, "sequence": 4096, "memory_limit": default_limit(machine)} | changes
    return PlanRequest(model=model(name), cluster=machine, fixed=fixed, trainers=plan_trainers(), **settings)


def as_draft(configuration: Configuration) -> Draft:
    """The fields of a configuration."""
    return {field.name: getattr(configuration, field.name) for field in fields(configuration)}


def broken_rule(requested: PlanRequest, draft: Draft) -> Rule | None:
    """The first rule other than those of practice that a draft breaks, of those whose fields are all chosen."""
    rules = (rule for rule in RULES if not rule.choice and rule.needs <= draft.keys())
    return next((rule for rule in rules if not rule.holds(requested, draft)), None)
