"""What no argument of the public functions can be is told in a sentence, before any work, with the argument's name."""

from typing import Any

import numpy as np
import pytest

import pipeplan as checked
from pipeplan.foundation.errors import PipeplanError

pipeplan: Any = checked
"""Without its types, which say the same."""
SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 2}


LAYER = checked.costs.Layer(forward=1, backward_input=1, backward_weight=1)


def differing(**settings: Any) -> Any:
    return pipeplan.simulate("1f1b", ranks=2, **settings)


def sharded(**settings: Any) -> Any:
    return pipeplan.simulate("interleaved-1f1b", **SHAPE, chunks=3, unshard_times=1.5, reduce_times=2, **settings)


@pytest.mark.needs("search", "planning", "training")
def test_invalid_arguments_are_named():
    for call, message in [
        (lambda: pipeplan.simulate(1.5), "a schedule is a name, a file, a strategy, a schedule or a timeline, not 1.5"),
        (
            lambda: pipeplan.compare(None),
            "a schedule is a name, a file, a strategy, a schedule or a timeline, not None",
        ),
        (lambda: pipeplan.simulate(["1f1b", "zbv"]), r"not \['1f1b', 'zbv'\]; compare takes several"),
        (lambda: pipeplan.compare([]), "the list of schedules is empty: leave it out for all"),
        (
            lambda: pipeplan.simulate(settings=3),
            "settings must be a pipeplan.Settings, a mapping or a config file, not 3",
        ),
        (
            lambda: pipeplan.simulate(settings={}, config="x.yaml"),
            "settings and config both name settings to start from",
        ),
        (lambda: pipeplan.simulate(settings={"rank": 2}), "unknown key in settings: 'rank'; did you mean 'ranks'"),
        (lambda: pipeplan.register("1f1b"), "cannot register '1f1b': expected one of Strategy, Format, Trainer"),
        (lambda: pipeplan.estimate(3), "the file of configurations must be a path, not 3"),
        (lambda: pipeplan.read_schedule(3), "the file must be a path, not 3"),
        (lambda: pipeplan.simulate(config=3), "the config file must be a path, not 3"),
        (lambda: pipeplan.read_timeline(b"x.csv"), "the file must be a path, not b'x.csv'"),
        (lambda: pipeplan.diff("1f1b", object), "the run must be a path, not <class 'object'>"),
        (lambda: pipeplan.export("1f1b", retime="yes"), "retime must be True or False, not 'yes'"),
        (
            lambda: pipeplan.read_schedule("a.csv", keep_duplicates=[1]),
            r"keep duplicates must be True or False, not \[1\]",
        ),
        (lambda: pipeplan.schedules(int), "the name of a schedule must be text, not <class 'int'>"),
        (lambda: pipeplan.search(**SHAPE, full_backward=2), "full backward must be True or False, not 2"),
        (lambda: pipeplan.search(**SHAPE, objective=np.array([1])), "unknown objective"),
        (lambda: pipeplan.search(**SHAPE, placement={}), "placement must be text, not {}"),
        (lambda: pipeplan.search(**SHAPE, layout=1), "unknown layout"),
        (lambda: pipeplan.pareto(**SHAPE, points=1), "points must be at least 2, not 1"),
        (lambda: pipeplan.sweep(store=2.5), "store must be a file path, not 2.5"),
        (lambda: pipeplan.search(**SHAPE, evaluations=[1, 2]), r"evaluations must be a whole number, not \(1, 2\)"),
        (lambda: pipeplan.simulate(**SHAPE, p2p_time="\ud800"), "p2p time"),
        (lambda: pipeplan.simulate(**SHAPE, offload_bytes=[[1]]), "offload_bytes"),
        (lambda: pipeplan.Settings(offload=-1), "offload: expected text or a list, got a whole number"),
        (lambda: pipeplan.Settings(backward_times=np.float32("inf")), "backward time must be more than 0 and finite"),
        (lambda: pipeplan.Training(layers="2"), "layers per stage must be whole numbers, not '2'"),
        (lambda: pipeplan.save(pipeplan.simulate(**SHAPE), "x.csv", ending=b""), "the ending must be text, not b''"),
        (lambda: pipeplan.profile(source="traces", calibrate=0.5), "configuration must be a path, not 0.5"),
        (lambda: pipeplan.profile(source="traces", model=np.array([])), "model must be text"),
        (
            lambda: pipeplan.profile(source="traces", layout=1),
            "layers per stage must be whole numbers of at least 0, not 1",
        ),
        (lambda: pipeplan.profile(device=3), "unknown device '3'"),
        (
            lambda: pipeplan.plan("llama3-8b", "h100-sxm:1x1", global_batch=1, sequence=1, fix=2.0),
            "invalid fixed setting, expected NAME=VALUE such as tp=8, not 2.0",
        ),
        # settings
        (lambda: pipeplan.simulate("1f1b", rank=4), "did you mean 'ranks'"),
        (lambda: pipeplan.simulate("1f1b", chunks=2), "1f1b needs 1 chunk"),
        (lambda: pipeplan.simulate("1f1b", ranks=2, stages=3), "3 stages are not 2 ranks x 1 chunk"),
        (lambda: pipeplan.simulate("1f1b", forward_times=[1, 2]), "2 values for 4 stages"),
        (lambda: pipeplan.simulate("1f1b", memory_limit="2GiB"), "is in bytes, but"),
        (lambda: pipeplan.simulate("1f1b", communication="fast"), "'fast'"),
        (lambda: pipeplan.simulate("dualpipe", ranks=3), "even number of ranks, not 3"),
        (lambda: pipeplan.simulate("zb-auto", slices=2), "zb-auto does not support sequence slices"),
        (lambda: pipeplan.simulate("seq1f1b", slices=0), "slices must be at least 1, not 0"),
        (lambda: pipeplan.simulate(None), "or a timeline, not None; leave it out for 1f1b"),
        (
            lambda: pipeplan.simulate(settings={"ranks": "two"}),
            "settings: ranks: invalid integer 'two': expected a whole number such as 4",
        ),
        (lambda: pipeplan.simulate(settings={"ranks": 2, "num_devices": 2}), "settings: ranks is set twice"),
        (lambda: pipeplan.simulate(settings="missing.yaml"), r"missing\.yaml"),
        (lambda: pipeplan.compare(forward_times=-1), "must be more than 0"),
        (lambda: pipeplan.compare("1f1b", "dualpipe", ranks=3), "dualpipe needs an even number"),
        (lambda: pipeplan.compare("zbv-heuristic", memory_limit="2act"), "room for 2"),
        # microbatches that differ
        (
            lambda: differing(microbatches=3, microbatch_factors=[1, 2]),
            "microbatch factors: 2 values for 3 microbatches",
        ),
        (lambda: differing(lengths=[1, 2], microbatch_factors=[1, 2]), "microbatch factors and lengths both set"),
        (lambda: differing(microbatch_factors=[[1, 2]] * 3), "microbatch factors: 3 rows"),
        (lambda: differing(microbatch_factors=[1, -1]), "microbatch factors: number 1 must be at least 1e-06, not -1"),
        (lambda: differing(microbatch_factors=[]), "must be a list of numbers that is not empty"),
        (lambda: differing(lengths=[1, [2, 0]]), "lengths: number 1 must be more than 0"),
        (lambda: differing(attention_share=0.5), "attention share needs the lengths"),
        (lambda: differing(lengths=[1, 1], attention_model="no such model"), "model"),
        # collectives
        (
            lambda: sharded(sharding="megatron", max_active_stages=2),
            "max_active_stages 2 needs sharding pytorch, not megatron",
        ),
        (lambda: sharded(sharding="none", unshard_lookahead="full"), "unshard_lookahead full needs sharding pytorch"),
        (lambda: sharded(unshard_lookahead="two"), "invalid unshard_lookahead 'two': expected full, auto, a number"),
        (lambda: sharded(unshard_lookahead="4"), "must be from 1 to max_active_stages, which is 3, not 4"),
        (lambda: sharded(unshard_lookahead="1,2,3"), "3 values for 2 ranks"),
        # studies
        (lambda: pipeplan.sweep("1f1b", ranks=2, p2p_time=[0.0, -1.0]), "p2p time must be at least 0"),
        (lambda: pipeplan.sweep("1f1b", ranks=2, microbatches=[]), "microbatches has no values to vary"),
        (lambda: pipeplan.sweep(["1f1b", "1F1B"], ranks=2), "a study has the schedule 1f1b twice"),
        (lambda: pipeplan.sweep("1f1b", p2p_time=range(400), op_gap=range(251)), "are more than 100,000 cases"),
        # layouts and trainers
        (lambda: pipeplan.export("missing.txt", to="bridge"), r"cannot read the schedule file missing\.txt"),
        (lambda: pipeplan.export("tok_embeddings,x", to="bridge"), "invalid torchtitan layout"),
        (lambda: pipeplan.export("Et|tL", to="bridge", retime=True), "retime does not apply to a layout"),
        (lambda: pipeplan.export("Et|tL", to="bridge", ranks=2), "ranks does not apply to a layout"),
        (lambda: pipeplan.export(to="megatron", layers_per_stage="Et*3|tm|L", ranks=3), "on a stage of their own"),
        (
            lambda: pipeplan.export(to="megatron", layers_per_stage="Et*3|t|tmL", mtp_layers=2, ranks=3),
            "mtp_layers is 2, but the layout has 1 layer",
        ),
        (
            lambda: pipeplan.simulate(**SHAPE, layers=(LAYER, LAYER), layers_per_stage="Et*2|t*2L"),
            "write numbers of layers instead",
        ),
        (lambda: pipeplan.Training(microbatch_size=0), "microbatch size must be at least 1, not 0"),
        (lambda: pipeplan.Training(mtp_layers=-1), "mtp layers must be at least 0, not -1"),
        (lambda: pipeplan.Training(layers=(1, -1)), r"at least 0 and not all 0, not \(1, -1\)"),
        (lambda: pipeplan.Training(layers=(0, 3)).layers_of(3), "layers per stage: 2 values for 3 stages"),
    ]:
        with pytest.raises(PipeplanError, match=message):
            call()


def test_what_is_long_is_not_told_in_full():
    with pytest.raises(PipeplanError) as error:
        pipeplan.simulate(**SHAPE, activation_bytes="x" * 5000)
    assert len(str(error.value)) < 500
