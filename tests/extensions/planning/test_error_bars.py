import re
from dataclasses import replace
from math import exp

import pytest

from benchmarks import plan as benchmark
from benchmarks.null_model import Known, filling, null_step_time, run_flops
from benchmarks.plan import coverage
from pipeplan.extensions.planning import estimate
from pipeplan.extensions.planning.error_bars import (
    FROM_ONE,
    LEAST,
    NEAREST,
    ROUNDED,
    WIDER,
    Compared,
    bar,
    distance,
    error_bar,
    features_of,
    nearest,
    table,
)
from pipeplan.extensions.planning.workload import token_flops
from tests.extensions.planning.configurations import H100, LLAMA, configuration


def run(ratio, source="a", model="m", **changes):
    features = features_of(LLAMA, H100, configuration(**changes))
    return Compared(id=f"{source}-{model}-{ratio}", source=source, model=model, features=features, ratio=ratio)


def test_distances():
    here = features_of(LLAMA, H100, configuration())
    assert features_of(LLAMA, H100, configuration(precision="fp16")) == here
    assert distance(here, here) == 0
    assert distance(here, features_of(LLAMA, H100, configuration(sequence=16384))) == pytest.approx(0.25)
    assert distance(here, features_of(LLAMA, H100, configuration(precision="fp8", tensor=8))) == pytest.approx(
        1 + 0.3 + 0.1
    )
    other = replace(H100, gpu=replace(H100.gpu, name="h200-sxm"))
    assert distance(here, features_of(LLAMA, other, configuration())) == pytest.approx(0.5)
    older = replace(H100, gpu=replace(H100.gpu, name="a100-sxm-80gb", generation="ampere"))
    assert distance(here, features_of(LLAMA, older, configuration())) == pytest.approx(2)


def test_the_nearest_come_first_and_few_of_one_table():
    runs = [run(1.0 + index / 100) for index in range(10)]
    runs += [run(2.0 + index / 100, source="b", sequence=4096) for index in range(10)]
    result = nearest(features_of(LLAMA, H100, configuration()), runs)
    assert [item.source for item in result] == ["a"] * FROM_ONE + ["b"] * FROM_ONE
    many = [run(1.0, source=str(index)) for index in range(100)]
    assert len(nearest(features_of(LLAMA, H100, configuration()), many)) == NEAREST


def bar_of(ratios, **changes):
    here = features_of(LLAMA, H100, configuration())
    return bar(here, [run(ratio, source=str(index), **changes) for index, ratio in enumerate(ratios)])[0]


def test_a_bar_is_the_range_without_its_tails():
    assert bar_of([1.0] * (LEAST - 1)) is None
    assert bar_of([0.9, 1.0, 1.1, 1.3]) == pytest.approx((0.9, 1.3))
    tails = [0.5, 0.9, *[1.0] * 16, 1.2, 9.0]
    assert bar_of(tails) == pytest.approx((exp(-ROUNDED), exp(ROUNDED))), "a tenth of 20 is two at either end"
    assert bar_of([1.1, 1.1, 1.2, 1.2]) == pytest.approx((exp(-ROUNDED), 1.2)), "the prediction stays inside"


def test_a_bar_widens_with_the_distance_of_the_nearest_run_and_ends():
    ratios = [0.9, 1.0, 1.1, 1.3]
    wider = 1 + WIDER * 1.5
    assert bar_of(ratios, precision="fp8", software="nemo") == pytest.approx((0.9**wider, 1.3**wider))
    assert bar_of(ratios, precision="fp8", context=8) is not None
    assert bar_of(ratios, precision="nvfp4", tensor=1, sequence=2048, context=8, data=16, software="primus") is None


def test_a_configuration_far_from_every_run_says_so():
    alone = replace(H100, gpu=replace(H100.gpu, name="of tomorrow", generation="cdna4"))
    predicted = estimate(LLAMA, alone, configuration(sequence=2**20, precision="nvfp4"))
    assert predicted.error_bar is None
    assert predicted.assumed[-1].startswith("error bar: none, because no published run is near; the nearest, ")
    assert "differs in" in predicted.assumed[-1]


def test_an_estimate_has_an_error_bar_from_runs_like_it():
    predicted = estimate(LLAMA, H100, configuration(software="nemo"))
    result, step_time = predicted.error_bar, predicted.step_time
    assert result is not None
    assert result.step_time_s == (step_time * result.low, step_time * result.high)
    assert 0.5 < result.low <= 1 <= result.high < 2
    assert "H100" in result.runs[0] or "h100" in result.runs[0]
    assert error_bar(LLAMA, H100, configuration(software="nemo"), step_time) == result


def test_coverage_leaves_a_source_out():
    runs = [run(1.0, source=source, model=str(index)) for source in "ab" for index in range(5)]
    far = [run(5.0, source="c", model=str(index)) for index in range(5)]
    assert [coverage(runs), coverage([*runs, *far]), coverage(runs[:2])] == pytest.approx([1.0, 2 / 3, 0.0])


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
    if not all(path.exists() for path in benchmark.RUNS):
        pytest.skip("the published runs are not beside this checkout")
    return benchmark.predicted(*benchmark.published())[0]


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


def test_the_page_and_the_package_hold_the_same_runs(predictions, monkeypatch):
    monkeypatch.setattr(benchmark, "coverage", lambda _: 0.0)  # takes long, and is not looked at
    shipped = {item.id: item.ratio for item in table().runs}
    assert len(shipped) == len(table().runs) > 500
    assert 0.7 < table().coverage <= 1
    made = {item.id: item.ratio for item in benchmark.compared(predictions).runs}
    assert made.keys() == shipped.keys()
    assert all(made[name] == pytest.approx(shipped[name], rel=0.02) for name in made)
    page = benchmark.PAGE.read_text(encoding="utf-8")
    assert benchmark.BEGIN in page
    assert benchmark.END in page
    assert f"{len(made)} step times" in page


def test_every_page_names_the_number_of_runs_that_the_package_holds():
    page = benchmark.PAGE.read_text(encoding="utf-8")
    steps, rows = map(int, re.findall(r"(\d+) step times of (\d+) rows", page)[0])
    assert steps == len(table().runs)
    pages = [benchmark.ROOT / "README.md", *(benchmark.ROOT / "docs").rglob("*.md")]
    numbers = {
        (path.name, int(number))
        for path in pages
        for number in re.findall(r"(\d+) published runs|all (\d+) runs by", path.read_text(encoding="utf-8"))
        for number in filter(None, number)
    }
    assert {("README.md", steps), ("index.md", rows), ("planning.md", rows)} == numbers
