import json
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.api.outputs import save
from pipeplan.cli import main
from pipeplan.errors import ShapeError


def test_reasons_add_up_and_what_ifs_are_simulated():
    costs: dict[str, Any] = {"ranks": 4, "microbatches": 6, "forward_times": [1, 1, 1, 2], "p2p_time": 0.5}
    found = pipeplan.explain("1f1b", **costs)
    np.testing.assert_allclose(found.totals.sum(axis=1), found.result.timeline.idle)
    what_ifs = {what.change: what.makespan for what in found.what_ifs}
    assert what_ifs["transfers free"] == pipeplan.simulate("1f1b", **costs | {"p2p_time": 0}).makespan
    assert what_ifs["1 more microbatch"] == pipeplan.simulate("1f1b", **costs | {"microbatches": 7}).makespan
    assert set(what_ifs) >= {"stage 3 balanced", "all stages balanced"}


def test_a_strategy_that_takes_only_even_numbers_gets_two_more():
    found = pipeplan.explain("dualpipe", ranks=4, microbatches=8)
    assert [what.change for what in found.what_ifs] == ["2 more microbatches"]


def test_causes_are_positions_among_all_ops():
    blocked = pipeplan.simulate("1f1b", ranks=2, microbatches=2, communication="blocking")
    gaps = blocked.view(reasons=True).gaps
    assert gaps is not None
    causes = {str(blocked.schedule.op(int(cause))) for cause in gaps.cause if cause >= 0}
    assert causes <= {"0F0", "0F1", "1F0", "1F1", "0B0", "0B1", "1B0", "1B1"}
    assert causes


def test_notebooks_show_results_comparisons_timelines_and_schedules():
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=2)
    comparison = pipeplan.compare("1f1b", "gpipe", ranks=2, microbatches=2)
    for shown in (result, comparison, result.timeline, result.schedule):
        assert "<img" in shown._repr_html_()
        assert (shown._repr_png_() or b"").startswith(b"\x89PNG")


def test_the_command(capsys):
    assert main(["explain", "zb-h1", "-p", "4", "-m", "8", "--p2p-time", "0.1"]) == 0
    text = capsys.readouterr().out
    assert "critical path" in text
    assert "transfers free" in text
    assert main(["explain", "zb-h1", "-p", "4", "-m", "8", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    reasons = document["explain"]["reasons"]
    assert [sum(values) for values in zip(*reasons.values(), strict=True)] == pytest.approx(document["idle"])


def test_more_ranks_than_can_be_walked_back_are_refused_and_a_page_does_without(tmp_path):
    with pytest.raises(ShapeError, match="at most 3,000 ranks are explained, not 3,001"):
        pipeplan.explain("1f1b", ranks=3001, microbatches=1)
    path = tmp_path / "page.html"
    save(pipeplan.simulate("1f1b", ranks=1000, microbatches=1), path)
    assert '"gaps":null' in path.read_text()
