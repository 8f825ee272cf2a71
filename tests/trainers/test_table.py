from itertools import product
from typing import Any

import pytest

import pipeplan
from pipeplan.extensions.planning import software
from pipeplan.extensions.planning.trainers import plan_trainer, plan_trainers
from pipeplan.formats import TORCH_RELEASES, torch_release
from pipeplan.foundation.errors import InputError, PipeplanError
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers import NEWEST, TRAINER_KINDS, TRAINERS, runners, trainer_kind
from pipeplan.trainers.torchtitan import RELEASES

ARGUMENTS = "--num-layers 32\n--pipeline-model-parallel-size 4\n--tensor-model-parallel-size 2\n"


def test_every_command_takes_every_name_of_a_trainer(tmp_path):
    file = tmp_path / "arguments.sh"
    file.write_text(ARGUMENTS, encoding="utf-8")
    for kind in TRAINER_KINDS:
        for name in kind.names:
            [configuration] = pipeplan.review(file, trainer=name).configurations
            assert configuration.trainer == kind.title, name
            trainer = TRAINERS.find(name)
            if trainer is None:
                continue
            assert pipeplan.check("1f1b", ranks=2, microbatches=4, trainer=name).valid, name
            assert pipeplan.export("1f1b", name, ranks=2, microbatches=4).text, name
            if trainer.name in plan_trainers():
                assert plan_trainer(name).name == kind.names[0]


def test_a_trainer_that_takes_no_schedule_is_named_as_such():
    with pytest.raises(InputError, match="cannot be written for verl: expected one of pytorch, megatron"):
        pipeplan.check("1f1b", ranks=2, microbatches=4, trainer="verl")


@pytest.mark.parametrize("trainer", runners())
def test_a_check_for_a_trainer_and_its_export_refuse_the_same_schedules(trainer):
    to = {"pytorch": "torch-csv-comms"}.get(trainer, trainer)
    for name, ranks, further in product(STRATEGIES, (2, 4), ({}, {"recompute": "all"})):
        options: dict[str, Any] = {"ranks": ranks, "microbatches": 2 * ranks, **further}
        verdict = pipeplan.check(name, trainer=trainer, **options)
        refusal = ""
        try:
            pipeplan.export(name, to, **options)
        except PipeplanError as error:
            refusal = str(error)
        assert verdict.valid == (not refusal), (name, options)
        # PyTorch's rules name the op before an export is tried.
        assert verdict.valid or trainer == "pytorch" or verdict.problems[0].message in refusal, (name, options)


def test_every_command_means_the_same_newest_release():
    for kind in TRAINER_KINDS:
        assert kind.checked.startswith(kind.newest), kind
        assert kind.newest in kind.releases or not kind.releases, kind
        assert NEWEST[kind.name] == kind.newest
        assert software(kind.software).name == kind.software
        trainer = TRAINERS.find(kind.name)
        if trainer is not None:
            assert (trainer.latest, trainer.releases, trainer.title) == (kind.newest, kind.releases, kind.title)
    assert tuple(RELEASES) == trainer_kind("torchtitan").releases
    assert trainer_kind("pytorch").newest == TORCH_RELEASES[-1] == torch_release(TORCH_RELEASES[-1])
    assert {"megatron", "bridge", "torchtitan"} < set(plan_trainers())


def test_a_release_that_is_none_is_refused():
    with pytest.raises(InputError, match="invalid release 'tomorrow'"):
        pipeplan.review({"pipeline_model_parallel_size": 2}, trainer_version="tomorrow")


def test_rules_of_old_releases_do_not_judge_the_newest():
    degrees = {"tensor_parallel_degree": 1, "pipeline_parallel_degree": 1, "context_parallel_degree": 1}
    batch = {"num_gpus": 8, **degrees, "local_batch_size": 3, "global_batch_size": 32}
    groups = {"tensor_model_parallel_size": 8, "num_query_groups": 4}
    cases = (
        ("torchtitan", batch, "titan-batch-not-divisible", "0.2", "0.3"),
        ("megatron", groups, "groups-not-multiple", "0.15", "0.19"),
    )
    for trainer, config, rule, old, new in cases:
        for release, judged in ((old, True), (new, False), ("main", False), (None, False)):
            review = pipeplan.review(config, trainer=trainer, trainer_version=release)
            rules = {finding.rule for finding in review.findings}
            assert (rule in rules) is judged, (rule, release)
