"""What we export, read by torchtitan's own ConfigManager: that of the release, and that of the main branch at hand.

``PIPEPLAN_TORCHTITAN_SOURCE`` names the folder of a clone of the main branch, which no package has.
"""

import os
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from torchtitan.config import ParallelismConfig, TrainingConfig

from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.formats import Training
from tests.peers.plans import PLANS, drawn, plan
from tests.peers.torchtitan.expected import batch_settings, differing, order_settings, planned_settings
from tests.peers.torchtitan.exports import PLANNED, Case, exported, layout, published, words, words_of_plan
from tests.peers.torchtitan.reading import Job, Settings, main
from tests.processes import run_ranks

CASES = [
    Case(schedule, layout(schedule.stages, 16, random.Random(schedule.stages)), size)
    for ranks, microbatches, chunks, size in ((2, 4, None, 1), (4, 9, None, 2), (3, 6, 3, 3))
    for schedule in published(ranks, microbatches, chunks)
]
SEQUENCE, REPLICAS = 64, 2
VARIABLE = "PIPEPLAN_TORCHTITAN_SOURCE"
SOURCE = os.environ.get(VARIABLE)


def training(release: str) -> Training:
    return Training(sequence_length=SEQUENCE, data_parallel=REPLICAS, trainer_version=release)


def wanted(case: Case, folder: Path, release: str) -> Settings:
    """What the settings of a case must say, beside the defaults."""
    schedule = case.schedule
    of_batch, of_training = batch_settings(
        release,
        sequence=SEQUENCE,
        microbatch_size=case.microbatch_size,
        microbatches=schedule.microbatches,
        replicas=REPLICAS,
    )
    order = order_settings(schedule, case.layers, str(folder / "plan.csv"))
    return Settings(order | of_batch | {"data_parallel_shard_degree": REPLICAS}, of_training)


def wrong(case: Case, settings: Settings, folder: Path, release: str, defaults: Settings) -> dict[str, str]:
    """What is not as the case has it."""
    right = wanted(case, folder, release)
    return differing(settings.parallelism, defaults.parallelism | right.parallelism) | differing(
        settings.training, defaults.training | right.training
    )


def test_flags_and_python_say_what_is_exported(tmp_path: Path, ran: Callable[[str], None]):
    defaults = Settings(asdict(ParallelismConfig()), asdict(TrainingConfig()))
    texts = [words(exported(case, tmp_path, training=training("0.3"))) for case in CASES]
    for case, settings in zip(CASES, main(Job(texts)), strict=True):
        assert wrong(case, settings, tmp_path, "0.3", defaults) == {}
        tables: dict[str, Any] = {}
        exec(exported(case, tmp_path, to="torchtitan-python", training=training("0.3")), tables)
        by_python = Settings(
            asdict(ParallelismConfig(**tables["PARALLELISM"])), asdict(TrainingConfig(**tables["TRAINING"]))
        )
        assert by_python == settings
    ran(f"its parser on the flags of {len(CASES)} exports")


PLANTED = ("num_tokens_per_train_step", "num_pp_microbatches", "max_context_length")
"""Fields of the main branch that the other release does not have."""


@pytest.mark.nightly
@pytest.mark.skipif(SOURCE is None, reason=f"set {VARIABLE} to a clone of torchtitan's main branch")
def test_the_main_branch_reads_what_is_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Callable[[str], None]
):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    texts = [words(exported(case, tmp_path, training=training("main"))) for case in CASES]
    planted = [planted_in(texts[0], field) for field in PLANTED]
    [parsed] = run_ranks("tests.peers.torchtitan.reading", 1, Job([*texts, *planted, ()], SOURCE))
    *settings, defaults = parsed
    for case, each in zip(CASES, settings, strict=False):
        assert wrong(case, each, tmp_path, "main", defaults) == {}
    for field, each in zip(PLANTED, settings[len(CASES) :], strict=True):
        assert list(wrong(CASES[0], each, tmp_path, "main", defaults)) == [field]
    ran(f"the main branch's parser on the flags of {len(CASES)} exports")


@pytest.mark.nightly
@pytest.mark.skipif(SOURCE is None, reason=f"set {VARIABLE} to a clone of torchtitan's main branch")
def test_the_main_branch_reads_every_plan_as_planned(monkeypatch: pytest.MonkeyPatch, ran: Callable[[str], None]):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    everything = [*map(plan, PLANS), *drawn(50, ("torchtitan",), seed=2).values()]
    plans = [each for each in everything if each[0].mtp_layers == 0 or each[2].pipeline == 1]
    flags = [flags_of(*each, versions={"torchtitan": "main"})["torchtitan"] for each in plans]
    texts = [words_of_plan(each.text)[4:] for each in flags]
    [parsed] = run_ranks("tests.peers.torchtitan.reading", 1, Job([*texts, ()], SOURCE))
    *settings, defaults = parsed
    for (model, _, configuration), each, text in zip(plans, settings, flags, strict=True):
        parallelism, of_training = planned_settings(model, configuration, next(iter(text.files), ""), "main")
        assert differing(each.parallelism, defaults.parallelism | parallelism) == {}
        steps = {"steps": int(PLANNED["STEPS"])}
        assert differing(each.training, defaults.training | of_training | steps) == {}
    ran(f"the main branch's parser on the flags of {len(plans)} plans")


def planted_in(flags: tuple[str, ...], field: str) -> tuple[str, ...]:
    """The flags with twice the number of a field."""
    at = next(at for at, word in enumerate(flags) if word.endswith(f".{field}"))
    return (*flags[: at + 1], str(2 * int(flags[at + 1])), *flags[at + 2 :])


def test_the_main_branch_has_other_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = exported(CASES[0], tmp_path, training=Training(trainer_version="main", sequence_length=64))
    with pytest.raises(SystemExit):
        main(Job([words(text)]))
    output = capsys.readouterr()
    assert "Unrecognized options" in output.out + output.err
