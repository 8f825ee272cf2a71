"""Rules of estimates: memory, balance of the stages, and idle time, as the planner predicts them."""

from __future__ import annotations

from pipeplan.extensions.review.estimating import estimated
from pipeplan.extensions.review.facts import NotSet, ReviewFacts, or_none
from pipeplan.extensions.review.rule import RuleRow
from pipeplan.extensions.review.stages import stages_of

_LOST = 0.02
"""Share of the step that another layout saves, above which a review warns."""

_SLIGHTLY_UNEVEN = 0.02
"""Imbalance of ranks and stages up to which no other layout is looked for."""

_MTP_LAYERS, _LOSS_LAYERS = 1.3, 0.3
"""Work of an MTP layer with its loss, and of the output layer, in transformer layers, where the model is unknown."""

_MUCH_IDLE = 0.25
"""Idle time of the pipeline over the step, above which a review advises."""


def _loads(c: ReviewFacts) -> list[float]:
    """Return the work of each rank in transformer layers, for an unknown model."""
    loads = [0.0] * c.pp
    for stage, letters in enumerate(stages_of(c)):
        loads[stage % c.pp] += letters.count("t") + _MTP_LAYERS * letters.count("m") + _LOSS_LAYERS * letters.count("L")
    return loads


def _last_too_heavy(c: ReviewFacts) -> bool:
    loads = _loads(c)
    others = max(loads[:-1])
    # Less than a layer too much cannot be moved.
    return loads[-1] > 1.05 * others and loads[-1] >= others + 1


def _uneven_layers(c: ReviewFacts) -> bool:
    loads = _loads(c)
    mean = sum(loads) / len(loads)
    return max(loads[:-1]) > 1.15 * mean and max(loads[:-1]) >= mean + 1


def _loses_by_layout(c: ReviewFacts) -> bool:
    now = estimated(c)
    return not now.guessed and max(now.imbalance, now.stage_imbalance) > _SLIGHTLY_UNEVEN and now.gain > _LOST


def _fit(c: ReviewFacts) -> str:
    """Return whether a configuration fits; of unknown GPUs, what holds with any number of them. Raises NotSet else."""
    now = estimated(c)
    if now.fit != "fits" and now.fit_of_many == "fits":
        raise NotSet("gpus")
    return now.fit_of_many if now.fit != "fits" else now.fit


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="memory-does-not-fit", group="estimates", trainer="any", severity="warning", question="fits",
        when=lambda c: not c.lacks("tp", "pp") and _fit(c) == "does not fit",
        message="the fullest rank needs about {e.peak_gib:.0f} GiB, and {e.gpu} has {e.limit_gib:.0f} GiB in comfort",
        remedy="recompute more, use a smaller micro batch, or more model parallelism",
        settings=("recompute_granularity", "activation_checkpointing", "micro_batch", "local_batch", "pp"),
        source="pipeplan estimate",
        repairs=("more-recompute", "shrink-micro-batch", "shrink-local-batch", "more-context", "more-tensor"),
    ),
    RuleRow(
        id="memory-tight", group="estimates", trainer="any", severity="warning", question="fits",
        when=lambda c: not c.lacks("tp", "pp") and _fit(c) == "tight",
        message="the fullest rank needs about {e.peak_gib:.0f} GiB: {e.gpu} has {e.limit_gib:.0f} GiB in comfort, within "
        "the error of the estimate",
        remedy="recompute more, or use a smaller micro batch",
        settings=("recompute_granularity", "activation_checkpointing", "micro_batch", "local_batch", "pp"),
        source="pipeplan estimate",
        repairs=("more-recompute", "shrink-micro-batch", "shrink-local-batch", "more-context", "more-tensor"),
    ),
    RuleRow(
        id="stages-unbalanced", group="estimates", trainer="any", severity="warning", question="loses",
        when=lambda c: c.pp > 1 and c.trainer.scopes and _loses_by_layout(c),
        message="rank {e.heaviest} has {e.imbalance:.0%} more work than the mean of the ranks, and the slowest stage "
        "{e.stage_imbalance:.0%} more than the mean of the stages: another layout saves {e.gain:.0%} of the step",
        remedy="move layers to other stages",
        settings=("layout", "last_stage_layers", "first_stage_layers", "modules_per_part", "account_loss", "pp"),
        source="pipeplan estimate", repairs=("planned-layout",),
    ),
    RuleRow(
        id="last-stage-heavy", group="estimates", trainer="any", severity="warning", question="loses",
        when=lambda c: c.pp > 1 and c.trains and not _estimable(c) and _last_too_heavy(c),
        message="the last rank has its full share of layers, and the MTP layers and the loss on top",
        remedy="move layers from the last stage to the stages before it",
        settings=("layout", "last_stage_layers", "mtp_layers", "pp"),
        source="Primus #930", repairs=("balanced-edges", "balanced-layout"),
    ),
    RuleRow(
        id="stages-uneven", group="estimates", trainer="any", severity="warning", question="loses",
        when=lambda c: c.pp > 1 and c.trains and not _estimable(c) and _uneven_layers(c),
        message="some rank has many more layers than the mean of the ranks",
        remedy="spread the layers evenly, with fewer on the last stage",
        settings=("layout", "first_stage_layers", "last_stage_layers", "modules_per_part", "pp"),
        source="arXiv 2104.04473, section 2.2", repairs=("balanced-edges", "balanced-layout"),
    ),
    RuleRow(
        id="vision-on-first-stage", group="estimates", trainer="any", severity="advice", question="loses",
        when=lambda c: c.pp > 1 and c.vision and stages_of(c)[0].count("t") >= max(s.count("t") for s in stages_of(c)),
        message="the first stage has its full share of layers, and the vision encoder on top",
        remedy="give the first stage fewer layers",
        settings=("layout", "first_stage_layers", "pp"), source="Megatron-Bridge recipes/glm_vl/h100/glm_45v.py",
    ),
    RuleRow(
        id="idle-pipeline", group="estimates", trainer="any", severity="advice", question="loses",
        when=lambda c: c.pp > 1 and estimated(c).bubble > _MUCH_IDLE,
        message="ranks idle for {e.bubble:.0%} of the step",
        remedy="use virtual stages, more microbatches or fewer ranks",
        settings=("vpp", "global_batch", "pp"), source="pipeplan estimate",
    ),
)
# fmt: on


def _estimable(c: ReviewFacts) -> bool:
    """Return True if the planner can estimate the configuration, so that rules of thumb need not judge it."""
    return or_none(lambda: estimated(c).imbalance) is not None
