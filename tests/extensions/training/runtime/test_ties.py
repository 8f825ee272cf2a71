"""Tied parameters in users' own training loops (``tied_loop``), and their names."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch import nn

from pipeplan.runtime import ties_of
from tests.extensions.training.runtime.test_pipeline import EPSILON, job

REFUSALS = {
    "accepted": "nothing was refused",
    "a string": 'invalid tie \'0.emb.weight\': expected two names or more, such as tied=[("0.emb.weight", "3.head.weight")]',
    "one name": "invalid tie ('0.emb.weight',): expected two names or more",
    "no stage": "invalid name 'emb.weight' in a tie: expected STAGE.PARAMETER, such as '0.emb.weight'",
    "stage": "unknown stage 4 in the tied name '4.head.weight': the schedule has the stages 0 to 3",
    "parameter": "unknown parameter '3.head.wieght'; did you mean '3.head.weight'?",
    "shape": "the tied parameters '0.emb.weight' and '3.body.shift' have different shapes, (11, 6) and (6,)",
    "type": "the tied parameters '0.emb.weight' and '3.head.weight' have different types, float32 and bfloat16",
    "trained": "are not both trained: set requires_grad of both, or of neither",
    "twice": "'3.head.weight' is in the ties twice: put all names of one parameter into one tie",
    "alias": "'0.emb.weight' and '0.alias.weight' are one parameter, but in two ties",
    "unlike": "the ranks have different ties: pass the same on all of them",
    "on one rank": "the ranks have different ties",
}


def test_the_ties_of_a_whole_model_have_the_names_of_its_stages() -> None:
    with torch.device("meta"):
        stages = [nn.Sequential(nn.Embedding(4, 2)), nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 4, bias=False))]
    stages[2][0].weight = stages[0][0].weight
    stages[0].register_parameter("again", stages[0][0].weight)
    assert ties_of(stages) == [("0.again", "2.0.weight")]
    assert ties_of({5: stages[1], 7: stages[2], 6: stages[2]}) == [("6.0.weight", "7.0.weight")]
    assert ties_of(stages[:2]) == []


@pytest.mark.slow
def test_tied_gradients_losses_and_weights_are_those_of_one_process(tmp_path: Path) -> None:
    """To the last bit where terms are added in the same order: per rank, then over the ranks."""
    for answer in job(tmp_path, 2, "strategies", "apart", "clipped", "resumed", "refusals", of="tied_loop"):
        for name, (gradients, losses, weights, beside) in answer["strategies"].items():
            assert (gradients, losses, weights) == (0.0, 0.0, 0.0), name
            assert beside < 8 * EPSILON, name
        for name, differences in answer["apart"].items():
            assert max(differences) < 8 * EPSILON, name
        for name, (norm, gradients) in answer["clipped"].items():
            assert (norm < 8 * EPSILON, gradients < 8 * EPSILON) == (True, True), name
        equal, lacking = answer["resumed"]
        assert equal
        assert "the checkpoint has no state of stage 1, which rank 1 holds" in lacking
        for case, message in REFUSALS.items():
            assert message in answer["refusals"][case], case
        assert answer["refusals"].keys() == REFUSALS.keys()


@pytest.mark.slow
def test_ties_over_more_ranks_and_replicas(tmp_path: Path) -> None:
    for answer in job(tmp_path, 4, "over_four", "replicated", of="tied_loop"):
        for name, (gradients, losses, weights, beside) in answer["over_four"].items():
            assert (gradients, losses, weights) == (0.0, 0.0, 0.0), name
            assert beside < 8 * EPSILON, name
        for way, (gradients, weights) in answer["replicated"].items():
            assert (gradients < 1e-5, weights < 1e-4) == (True, True), way
