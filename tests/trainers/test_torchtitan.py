import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from pipeplan.formats import TrainerSettings, Training, parse_torch_csv
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Schedule, parse_schedule
from pipeplan.passes import insert_recompute
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers.torchtitan import torchtitan_flags, torchtitan_python
from pipeplan.trainers.torchtitan_layout import module_names
from tests.names import ODD


def named(name: str, ranks: int, microbatches: int, chunks: int | None = None) -> Schedule:
    strategy = STRATEGIES[name]
    return strategy(strategy.shape(ranks, microbatches, chunks))


def words(settings: TrainerSettings) -> list[str]:
    """The flags as bash hands them to torchtitan."""
    script = settings.text + "printf '%s\\0' \"${TORCHTITAN_ARGS[@]}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


def fields(settings: TrainerSettings) -> dict[str, Any]:
    """What the words of each flag are; one word stands for itself, none for a truth."""
    result: dict[str, list[str]] = {}
    for word in words(settings):
        if word.startswith("--"):
            result[word.removeprefix("--")] = values = []
        else:
            values.append(word)
    return {name: values[0] if len(values) == 1 else values or True for name, values in result.items()}


def scheduled(settings: TrainerSettings, config: SimpleNamespace) -> SimpleNamespace:
    names: dict[str, Any] = {}
    exec(settings.text, names)
    overrides: SimpleNamespace = names["scheduled"](config)
    return overrides


@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        (named("1f1b", 4, 8), "1F1B"),
        (named("interleaved-1f1b", 4, 8), "Interleaved1F1B"),
        (named("zbv", 4, 8), "ZBVZeroBubble"),
    ],
)
def test_the_name_says_where_the_stages_are(schedule: Schedule, name: str):
    settings = torchtitan_flags(schedule, Training(csv="plans/mine.csv", microbatch_size=3))
    assert fields(settings) == {
        "parallelism.pipeline_parallel_degree": "4",
        "parallelism.pipeline_parallel_schedule": name,
        "parallelism.pipeline_parallel_schedule_csv": "plans/mine.csv",
        "parallelism.pipeline_parallel_microbatch_size": "3",
        "training.local_batch_size": "24",
        "training.disable_cuda_graphs": True,
    }
    assert parse_torch_csv(settings.files["plans/mine.csv"]) == schedule


def test_the_batch_in_tokens():
    training = Training(microbatch_size=2, data_parallel=3, sequence_length=128, trainer_version="main")
    settings = torchtitan_flags(named("1f1b", 2, 4), training)
    result = fields(settings)
    assert result["training.num_tokens_per_microbatch_per_dp_rank"] == "256"
    assert result["training.num_tokens_per_train_step"] == "3072"
    assert result["training.max_context_length"] == "128"
    assert result["parallelism.num_pp_microbatches"] == "4"
    assert not {"training.local_batch_size", "training.seq_len", "parallelism.pipeline_parallel_microbatch_size"} & {
        *result
    }
    assert settings.text.startswith("# torchtitan's main branch as of 2026-08-21")


def test_python_gives_a_config_the_same_as_the_flags():
    training = Training(layers=(1, 2, 2, 0), csv="a.csv", data_parallel=2)
    config = SimpleNamespace(
        parallelism=SimpleNamespace(),
        training=SimpleNamespace(steps=3),
        loss=SimpleNamespace(num_chunks=8, loss_fn="cross entropy"),
    )
    for schedule, loss in ((named("zbv", 2, 6), "cross entropy"), (named("interleaved-1f1b", 2, 6), config.loss)):
        flags, python = torchtitan_flags(schedule, training), torchtitan_python(schedule, training)
        overrides = scheduled(python, SimpleNamespace(**vars(config)))
        printed = {
            f"{part}.{name}": value
            for part in ("parallelism", "training")
            for name, value in vars(getattr(overrides, part)).items()
        }
        assert printed.pop("training.steps") == 3
        modules = printed.pop("parallelism.module_fqns_per_model_part")
        assert modules == module_names((1, 2, 2, 0))
        expected = fields(flags)
        assert expected.pop("parallelism.module_fqns_per_model_part") == [",".join(part) for part in modules]
        assert {name: value if value is True else str(value) for name, value in printed.items()} == expected
        assert overrides.loss == loss
        assert (python.files, python.warnings) == (flags.files, flags.warnings)


def test_a_split_backward_of_the_last_stage_needs_another_loss():
    for schedule, splits in (
        (named("zbv", 2, 6), True),
        (named("dualpipev", 2, 6), True),
        (named("1f1b", 2, 6), False),
        (parse_schedule("0F0 0F1 0I0 0W0 0I1 0W1\n1F0 1B0 1F1 1B1"), False),
    ):
        settings = torchtitan_flags(schedule, Training())
        assert [("norm.weight" in warning and "plain cross entropy" in warning) for warning in settings.warnings] == [
            True
        ] * splits
        assert ("# Warning: with torchtitan's default loss" in settings.text) == splits


@pytest.mark.parametrize(
    ("schedule", "overrides", "message"),
    [
        (named("hanayo", 2, 4, 4), {}, "in a line, in a loop or on a V"),
        (named("dualpipe", 2, 6), {}, "placement is bidirectional"),
        (named("seq1f1b", 2, 4), {}, "2 slices per sequence"),
        (parse_schedule("0F0 1F0 1B0 0B0"), {"layers": (1, 1)}, "needs at least two pipeline ranks"),
        (named("1f1b", 2, 4), {"layers": (1, 2, 3)}, "layers per stage: 3 values for 2 stages"),
        (
            named("1f1b", 4, 4),
            {"layers": (1, 2, 0, 1)},
            "stages without layers only at the ends.*stage 2 has none",
        ),
        (named("interleaved-1f1b", 2, 4, 3), {}, "builds 2 stages per rank by default, but this schedule has 3"),
        (named("1f1b", 2, 4), {"mtp_layers": 1}, "do not support multi-token prediction"),
        (named("1f1b", 2, 4), {"trainer_version": "main"}, "counts its batch in tokens"),
    ],
)
def test_what_torchtitan_cannot_build(schedule: Schedule, overrides: dict[str, Any], message: str):
    for write in (torchtitan_flags, torchtitan_python):
        with pytest.raises(ShapeError, match=message):
            write(schedule, Training(**overrides))


def test_every_stage_is_recomputed_or_none():
    schedule = named("1f1b", 2, 4)
    settings = torchtitan_flags(insert_recompute(schedule), Training(csv="a.csv"))
    assert words(settings)[-1] == "activation-checkpoint:full"
    assert parse_torch_csv(settings.files["a.csv"]) == schedule
    assert "FullAC.Config()" in torchtitan_python(insert_recompute(schedule), Training()).text
    assert "FullAC" not in torchtitan_python(schedule, Training()).text
    with pytest.raises(ShapeError, match="on every stage or on none; this schedule on stages 1"):
        torchtitan_flags(insert_recompute(schedule, [1]), Training())


@pytest.mark.parametrize("name", ODD)
def test_any_name_and_any_path_stand_in_it_as_they_are(name: str):
    schedule = named("1f1b", 2, 2).renamed(name)
    (default,) = torchtitan_flags(schedule, Training()).files
    assert len(default) < 255
    assert not set(default) & set("/\n\0 '\"$")
    path = f"plans/{name}.csv".replace("\0", "")
    settings = torchtitan_flags(schedule, Training(csv=path))
    assert fields(settings)["parallelism.pipeline_parallel_schedule_csv"] == path
    overrides = scheduled(
        torchtitan_python(schedule, Training(csv=path)),
        SimpleNamespace(parallelism=SimpleNamespace(), training=SimpleNamespace()),
    )
    assert overrides.parallelism.pipeline_parallel_schedule_csv == path
