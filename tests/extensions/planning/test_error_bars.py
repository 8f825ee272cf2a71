import re
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from benchmarks import error_ranges
from benchmarks import plan as benchmark
from benchmarks.error_ranges import Compared, held_by_kind, quantile, ranges_of
from benchmarks.leave_one_out import Linear
from benchmarks.null_model import Known, filling, null_step_time, run_flops
from benchmarks.published_runs.sources import SHARED, published
from pipeplan.extensions.planning import estimate
from pipeplan.extensions.planning.error_bars import LONG, PER_DOUBLING, UNSEEN, ErrorTable, error_bar, kind_of, table
from pipeplan.extensions.planning.workload import token_flops
from tests.extensions.planning.configurations import H100, LLAMA, configuration

KIND = kind_of(LLAMA, H100, configuration())
A100 = replace(H100, gpu=replace(H100.gpu, name="a100", generation="ampere"))


def run(ratio, source="a", kind=KIND):
    return Compared(id=f"run of {source}", source=source, kind=kind, sequence=8192, gpus=64, ratio=ratio)


def range_of(ratios):
    """The range of runs of one kind, each from its own source."""
    return ranges_of([run(ratio, source=str(number)) for number, ratio in enumerate(ratios)])[0]


def test_the_kind_of_a_run_is_generation_experts_and_context():
    assert str(KIND) == "on Hopper GPUs without experts"
    assert kind_of(LLAMA, H100, configuration(precision="fp8", tensor=8)) == KIND
    assert kind_of(LLAMA, A100, configuration()) != KIND
    assert kind_of(LLAMA, H100, configuration(sequence=2 * LONG)).long


def test_a_range_leaves_out_the_tails_and_contains_the_prediction(monkeypatch):
    monkeypatch.setattr(error_ranges, "FEW_SOURCES", 0.0)
    many = range_of([0.5, 0.9, *[1.0] * 16, 1.2, 9.0])
    assert 0.85 < many.low < 0.98
    assert 1.02 < many.high < 1.25
    above = range_of([1.1, 1.1, 1.2, 1.2])
    assert (above.low, above.high) == pytest.approx((exp(-0.03), 1.2), abs=1e-3)


def test_runs_of_a_large_source_do_not_outvote_the_others():
    values, weights = np.array([0.0] * 90 + [1.0] * 10), np.array([90**-0.5] * 90 + [10**-0.5] * 10)
    assert quantile(values, weights, 0.85) == 1.0
    assert quantile(values, np.ones(100), 0.85) == 0.0


def test_a_range_of_few_sources_is_wider():
    ratios = [0.9, 0.95, 1.05, 1.1]
    one = ranges_of([run(ratio) for ratio in ratios])[0]
    assert one.kind.generation == "", "a single source makes no range of a generation"
    assert one.low < range_of(ratios).low
    assert one.high > range_of(ratios).high


def bar_of(cluster=H100, **changes):
    result = error_bar(LLAMA, cluster, configuration(**changes), 10.0)
    assert result is not None
    return result


def bars(monkeypatch, shipped, cluster=H100, **changes):
    monkeypatch.setattr("pipeplan.extensions.planning.error_bars.table", lambda: shipped)
    result = bar_of(cluster, **changes)
    return log(result.low), log(result.high), result.basis


def test_a_bar_widens_beyond_the_runs_and_says_so(monkeypatch):
    shipped = ErrorTable(ranges=ranges_of([run(ratio, source=str(ratio)) for ratio in (0.9, 1.0, 1.1)]))
    low, high, basis = bars(monkeypatch, shipped)
    assert bar_of().runs == ("run of 0.9", "run of 1.0", "run of 1.1")
    assert basis == "3 published runs on Hopper GPUs without experts from 3 sources"
    wider = bars(monkeypatch, shipped, sequence=16384)
    assert wider[:2] == pytest.approx((low * (1 + PER_DOUBLING), high * (1 + PER_DOUBLING)))
    assert wider[2].endswith("(their sequences have at most 8,192 tokens: the range is wider)")
    other = bars(monkeypatch, shipped, A100)
    assert other[:2] == pytest.approx((low * UNSEEN, high * UNSEEN))
    assert other[2].endswith("(too few of them on Ampere GPUs without experts: the range is wider)")


def test_an_estimate_has_the_error_bar_of_its_kind():
    predicted = estimate(LLAMA, H100, configuration())
    result, step_time = predicted.error_bar, predicted.step_time
    assert result is not None
    assert result.step_time_s == (step_time * result.low, step_time * result.high)
    assert 0.7 < result.low < 1 < result.high < 1.4
    assert "on Hopper GPUs without experts" in result.basis


def test_a_million_tokens_have_a_wider_bar_than_eight_thousand():
    def width(**changes):
        return bar_of(**changes).high / bar_of(**changes).low

    assert width(sequence=2**20, context=8) > 1.25 * width()


def test_bars_are_judged_with_their_source_left_out():
    runs = [run(ratio, source) for source in "abcd" for ratio in (0.95, 1.0, 1.05)]
    far = [run(5.0, source="e")]
    assert held_by_kind(runs)[KIND][0] == 1.0
    assert held_by_kind([*runs, *far])[KIND][0] == pytest.approx(12 / 13)


def test_a_source_left_out_is_predicted_by_the_fit_to_the_others():
    slopes = np.array([[-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    # The first constant is 10 % too low for every source; only one source shows the second.
    found = Linear(np.array([0.1, 0.1, 0.1, 0.1, 0.1]), slopes, np.array(["a", "a", "b", "c", "d"]))
    left_out = found.left_out()
    assert np.abs(left_out[:4]).max() < 0.03
    assert left_out[4] == pytest.approx(0.1), "a constant that no other source shows keeps its value"


def known(**changes):
    return Known(model=LLAMA, cluster=H100, configuration=configuration(**changes), step_time=14.61)


def test_the_null_models_fraction_gives_back_its_own_step():
    tokens = 128 * 8192
    assert run_flops(known()) == pytest.approx(token_flops(LLAMA, 8192).training * tokens)
    assert run_flops(known(recompute=("full",))) == pytest.approx(4 / 3 * run_flops(known()))
    assert filling(configuration()) == pytest.approx(1 + 3 / (5 * 64))
    assert 0.3 < known().fraction < 0.6
    other = replace(known(), model=replace(LLAMA, name="another"))
    assert null_step_time(known(), [other]) == pytest.approx(14.61)
    assert null_step_time(known(), [known()]) is None, "the same model's"


@pytest.fixture(scope="module")
def predictions():
    if not all(path.exists() for path in SHARED):
        pytest.skip("the published runs are not beside this checkout")
    return benchmark.predicted(*published())[0]


@pytest.mark.parametrize(
    ("group", "most"),
    [
        ("Reducing Activation Recomputation", 4),
        ("Efficient Large-Scale Language Model", 6),
        ("Zero Bubble", 6),
        ("SimuMax B200 release v1.2, dense", 7),
        ("SimuMax B200 release v1.2, MoE", 5),
        ("Megatron Bridge performance summary, dense", 7),
        ("Megatron Bridge performance summary, MoE", 11),
        ("NVIDIA DGX Cloud benchmarking recipes, dense", 3),
        ("NVIDIA DGX Cloud benchmarking recipes, MoE", 7),
        ("NeMo long sequence performance", 30),  # only their notes tell that they are of a release of 2024
        ("Primus Projection", 8),
        ("MoE Parallel Folding", 8),
        ("MPT training benchmarks", 7),
        ("vTrain", 10),
    ],
)
def test_steps_of_a_source_are_near_and_nearer_than_the_null_models(predictions, group, most):
    result = [item for item in predictions if benchmark.group_of(item.row).startswith(group)]
    errors = [item.step_error for item in result if item.step_error is not None]
    nulls = [item.null_error for item in result if item.null_error is not None]
    assert errors
    assert 100 * benchmark.mean_absolute(errors) <= most
    assert benchmark.mean_absolute(errors) < benchmark.mean_absolute(nulls)


def test_the_page_and_the_package_are_of_the_same_comparison(predictions):
    page = benchmark.PAGE.read_text(encoding="utf-8")
    steps, rows = map(int, re.findall(r"(\d+) step times of (\d+) rows", page)[0])
    assert steps == sum(item.step_error is not None for item in predictions) < rows
    assert sum(found.runs for found in table().ranges if not found.kind.generation) == steps
