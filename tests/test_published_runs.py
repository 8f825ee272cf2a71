"""Published runs against what is predicted for them: with the gap between ops, and in the order that was measured."""

import pytest

from benchmarks import published
from benchmarks.published import Run, mean_error, pairs, predicted, predictions, published_runs, report

SMALL = Run(
    name="zb-4-1.5B-p8-m24-b6-1F1B",
    model="GPT 1.5B",
    schedule="1F1B",
    ranks=8,
    chunks=1,
    microbatches=24,
    forward=18.522,
    backward_input=18.086,
    backward_weight=9.337,
    transfer=0.601,
    freed_by_weight=0.37,
    measured=1525.4,
)


@pytest.fixture(scope="module")
def table_4():
    if not published.FOLDER.exists():
        pytest.skip("the published runs are not beside this checkout")
    return published_runs(["zb-4-"])


def test_a_run_of_the_table():
    assert predicted(SMALL, machine="none") / SMALL.measured - 1 == pytest.approx(-0.045, abs=1e-3)
    assert predicted(SMALL) / SMALL.measured - 1 == pytest.approx(-0.0105, abs=1e-3)


def test_the_steps_of_table_4(table_4):
    result = predictions(table_4)
    assert len(result) == 24
    assert mean_error(result) < 0.02
    for model in {run.model for run in table_4}:
        assert mean_error([each for each in result if each.run.model == model]) < 0.02
    assert all(short.step < long.step for short, long in pairs(result))
    assert len(pairs(result)) == 35
    assert mean_error(predictions(table_4, machine="none")) > 0.08


def test_the_report_names_the_pairs_that_come_out_wrong(table_4):
    runs = [run for run in table_4 if run.group == ("GPT 1.5B", 64)]
    ideal = predictions(runs, machine="none")
    lines = list(report(ideal, ideal))
    assert lines[0].startswith("| run |")
    assert lines[-2] == "5 of 6 pairs of Table 4 in the measured order"
    assert lines[-1].startswith("- zb-4-1.5B-p8-m64-b6-ZB-1p was 2.2% shorter than zb-4-1.5B-p8-m64-b6-1F1B-I")
