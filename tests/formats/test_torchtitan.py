import tomllib

import pytest

from pipeplan.errors import ShapeError
from pipeplan.formats.torchtitan import torchtitan_toml
from pipeplan.model import Schedule, parse_schedule
from pipeplan.strategies import STRATEGIES
from tests.names import ODD


def named(name: str, ranks: int, microbatches: int, chunks: int | None = None) -> Schedule:
    strategy = STRATEGIES[name]
    return strategy(strategy.shape(ranks, microbatches, chunks))


@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        (named("1f1b", 4, 8), "1F1B"),
        (named("zb-h1", 4, 8), "1F1B"),
        (named("interleaved-1f1b", 4, 8), "Interleaved1F1B"),
        (named("zbv", 4, 8), "ZBVZeroBubble"),
        (named("v-half", 4, 8), "ZBVZeroBubble"),
    ],
)
def test_the_name_says_where_the_stages_are(schedule: Schedule, name: str):
    settings = tomllib.loads(torchtitan_toml(schedule, "plans/mine.csv", microbatch_size=3))
    assert settings == {
        "training": {"local_batch_size": 24},
        "parallelism": {
            "pipeline_parallel_degree": 4,
            "pipeline_parallel_schedule": name,
            "pipeline_parallel_schedule_csv": "plans/mine.csv",
            "pipeline_parallel_microbatch_size": 3,
        },
    }


def test_what_must_match_is_said():
    text = torchtitan_toml(named("zbv", 2, 6), "zbv.csv")
    assert "must be the CSV's 6 microbatches" in text
    assert "must be split into the CSV's 4 stages, 2 a rank" in text
    assert "Overlapped" not in text
    assert "Overlapped pairs run one op after the other" in torchtitan_toml(named("dualpipev", 2, 6), "d.csv")
    assert "pipeline_parallel_layers_per_stage) = 6" in torchtitan_toml(named("interleaved-1f1b", 2, 6, 3), "i.csv")


def test_layers_a_stage():
    text = torchtitan_toml(named("zbv", 2, 6), "zbv.csv", layers=(1, 2, 0, 1))
    assert tomllib.loads(text)["parallelism"]["module_fqns_per_model_part"] == [
        ["tok_embeddings", "layers.0"],
        ["layers.1", "layers.2"],
        [],
        ["layers.3", "norm", "output"],
    ]


def test_a_path_with_quotes():
    text = torchtitan_toml(named("1f1b", 2, 2), 'C:\\plans\\"é".csv')
    assert tomllib.loads(text)["parallelism"]["pipeline_parallel_schedule_csv"] == 'C:\\plans\\"é".csv'


@pytest.mark.parametrize(
    ("schedule", "layers", "message"),
    [
        (named("hanayo", 2, 4, 4), None, "in a line, in a loop or on a V"),
        (named("dualpipe", 2, 6), None, "placement is bidirectional"),
        (named("seq1f1b", 2, 4), None, "cut into 2"),
        (parse_schedule("0F0 1F0 1B0 0B0"), None, "needs at least two pipeline ranks"),
        (named("1f1b", 2, 4), (1, 2, 3), "layers must be 2 numbers of at least 0"),
        (named("1f1b", 2, 4), (1, -2), "layers must be 2 numbers of at least 0"),
    ],
)
def test_what_torchtitan_cannot_build(schedule: Schedule, layers: tuple[int, ...] | None, message: str):
    with pytest.raises(ShapeError, match=message):
        torchtitan_toml(schedule, "a.csv", layers=layers)


@pytest.mark.parametrize("name", ODD)
def test_any_name_stands_in_it_as_it_is(name: str):
    schedule = named("1f1b", 2, 2).renamed(name)
    settings = tomllib.loads(torchtitan_toml(schedule, f"{name}.csv"))
    assert settings["parallelism"]["pipeline_parallel_schedule_csv"] == f"{name}.csv"
