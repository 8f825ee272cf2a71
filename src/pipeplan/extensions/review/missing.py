"""Reasons why a configuration cannot be estimated: what it does not say, and the options that say it."""

from __future__ import annotations

from math import gcd, lcm

from pipeplan.extensions.review.conversion import model_of, usual_node
from pipeplan.extensions.review.estimating import estimated
from pipeplan.extensions.review.facts import NotSet, ReviewFacts, or_none
from pipeplan.extensions.review.settings import SETTINGS


def missing_facts(c: ReviewFacts) -> str:
    """Return what a configuration that cannot be estimated does not say, and the options that say it, in words."""
    if not c.trains:
        return "only training steps are estimated, and this job does not train"
    gpu = "a GPU that pipeplan knows" if c.has("device") else "the GPU"
    sized = c.has("hidden", "heads") and (c.has("layers") or c.get("hybrid_pattern", None))
    named = {
        "a model that pipeplan knows": bool(sized) or or_none(lambda: model_of(c, [])) is not None,
        gpu: c.cluster is not None or or_none(lambda: usual_node(str(c.device))) is not None,
        "the degrees": c.has("pp") or c.has("tp") or c.has("local_batch"),
    }
    missing = [words for words, known in named.items() if not known]
    if not missing:
        return _refusal(c)
    # Examples of options that say what a configuration leaves out.
    options = {"a model that pipeplan knows": "--model config.json", gpu: f"--cluster {_cluster_like(c)}"}
    examples = " ".join(options[words] for words in missing if words in options)
    remedy = f": review it with {examples}" if examples else ""
    return f"the configuration does not name {' and '.join(missing)}{remedy}"


_REFUSALS = {
    "layout": "the split of the layers into stages is unknown",
    "gpus": "the degrees do not divide the GPUs",
    "global_batch": "the global batch is smaller than a microbatch of every replica",
    "layers": "the model's pattern has another number of layers",
}
"""Reasons why a configuration that names all cannot be estimated, by the setting that the conversion misses."""


def _refusal(c: ReviewFacts) -> str:
    """Return why a configuration that names all cannot be estimated."""
    try:
        estimated(c).estimate  # noqa: B018  (its refusal is the answer)
    except NotSet as missing:
        name = str(missing)
        return _REFUSALS.get(name, f"{SETTINGS[name].keys[0]} is not stated" if name in SETTINGS else name)
    return "the estimate is refused"


def _cluster_like(c: ReviewFacts) -> str:
    """Return an example of a cluster with as many GPUs as the configuration has, or the fewest that its degrees need."""
    gpus = or_none(lambda: c.world) or lcm(c.model_parallel, 8)
    per_node = gcd(int(c.get("gpus_per_node", 8)), gpus)
    return f"h100-sxm:{per_node}x{gpus // per_node}"
