"""Estimates as answers: of files and dictionaries, one or many, beside what was measured, and refused in a sentence."""

from __future__ import annotations

import json

import pytest

import pipeplan
from pipeplan.extensions.planning.answers.estimation import FEW
from pipeplan.extensions.planning.answers.one_configuration import simulated
from pipeplan.extensions.review.estimating import Estimated
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError, UnknownNameError
from tests.plans import MACHINES, SHAPE, estimated

ONE = {"model": "llama3-8b", "cluster": "h100-sxm:8x2", "global_batch": 64, "sequence": 8192, "tp": 2, "pp": 4}


def test_one_configuration_from_python_and_from_a_file(tmp_path):
    (row,) = pipeplan.estimate(ONE)
    answer = row.estimate
    assert row.refused is None
    assert answer == estimated(tensor=2, pipeline=4, data=2, sequence_parallel=True)
    record = row.to_dict()
    assert record["step_time_s"] == pytest.approx(sum(record["breakdown"].values())) == answer.step_time
    assert record["peak_memory_gib"] == max(record["peak_memory_by_rank_gib"])
    (tmp_path / "run.json").write_text(json.dumps(ONE))
    (same,) = pipeplan.estimate(tmp_path / "run.json")
    assert (same.id, same.estimate) == ("run.json", answer)
    by_holder = [sum(held.values()) for held in record["memory_breakdown_by_rank_gib"]]
    assert by_holder == pytest.approx(record["peak_memory_by_rank_gib"])


def test_what_the_only_configuration_rests_on_is_named_with_its_opposite():
    answer = pipeplan.estimate(ONE)
    (row,) = answer
    assert answer.headline.startswith("tp2 pp4 dp2, 1f1b: 4.")
    assert " s likely), 30.2 GiB, MFU " in answer.headline
    assert row.assumptions
    gradients = next(entry for entry in row.assumptions if "gradients" in entry.assumed)
    name, value = gradients.setting.split("=")
    (other,) = pipeplan.estimate(ONE | {name: value})
    assert other.step_time_s == gradients.step_time_s
    assert other.peak_memory_gib == gradients.peak_memory_gib
    assert all("assumptions" not in row.to_dict() for row in pipeplan.estimate({"rows": [ONE, ONE]}))


def test_what_is_not_set_is_assumed_and_said():
    (row,) = pipeplan.estimate(ONE)
    assert "sequence parallelism: on" in row.assumed
    (row,) = pipeplan.estimate(ONE | {"sp": "off"})
    assert row.estimate == estimated(tensor=2, pipeline=4, data=2)
    assert not any("sequence parallelism" in entry for entry in row.assumed)
    (row,) = pipeplan.estimate(ONE | {"software": "zero-bubble"})
    assert "sequence parallelism: off" in row.assumed


LAYOUTS = {
    "layout": "Et*3|(tt|)*14,tL",
    "layers": "Ettt|" + "tt|" * 14 + "tL",
    "layers_per_stage": "3+" + "2+" * 14 + "1",
}
"""Texts by the key that they are set with."""

PARTS = [["embedding", *["decoder"] * 3], *[["decoder", "decoder"]] * 14, ["decoder", "loss"]]


@pytest.mark.parametrize(
    ("key", "layout"), [*LAYOUTS.items(), ("layout", PARTS), ("layout", str(PARTS)), ("layers", [3, *[2] * 14, 1])]
)
def test_layouts_of_trainers_imply_the_chunks(key, layout):
    (row,) = pipeplan.estimate(ONE | {"pp": 8, key: layout})
    assert row.estimate is not None
    settings = row.estimate.settings
    assert (settings.chunks, settings.schedule) == (2, "interleaved-1f1b")
    assert settings.layers == (3, *[2] * 14, 1)
    assert any(entry.startswith("chunks per rank: 2") for entry in row.assumed)


def test_several_chunks_imply_an_interleaved_schedule():
    (row,) = pipeplan.estimate(ONE | {"vp": 2})
    assert row.estimate is not None
    assert row.estimate.settings.schedule == "interleaved-1f1b"
    assert "schedule: interleaved-1f1b, because ranks have several chunks" in row.assumed
    with pytest.raises(InputError, match="1f1b needs 1 chunk per rank, not 2: interleaved-1f1b takes several"):
        pipeplan.estimate(ONE | {"vp": 2, "schedule": "1f1b"})


@pytest.mark.parametrize(("layout", "message"), [("Et*3|x|L", "x is not a part"), ([3, "x"], "invalid layers")])
def test_a_layout_that_is_none_is_refused(layout, message):
    with pytest.raises(InputError, match=message) as caught:
        pipeplan.estimate(ONE | {"pp": 2, "layout": layout})
    assert caught.value.field == "layout"


def test_rows_that_cannot_be_say_why_beside_those_that_can():
    rows = [{"id": "good", **ONE}, {"id": "bad", **ONE, "tp": 3}, {**ONE, "model": "llama3-8x"}, {**ONE, "dp": 3}, 7]
    answer = pipeplan.estimate({"rows": rows})
    assert [row.id for row in answer] == ["good", "bad", "row 2", "row 3", "row 4"]
    assert [row.refused is None for row in answer] == [True, False, False, False, False]
    assert "does not divide 16 GPUs" in (answer["bad"].refused or "")
    assert "did you mean 'llama3-8b'" in (answer["row 2"].refused or "")
    assert "expected the cluster's 16" in (answer["row 3"].refused or "")
    for row in answer:
        record = row.to_dict()
        assert set(record) >= {"id", "step_time_s", "peak_memory_gib", "peak_memory_by_rank_gib", "breakdown"}
        assert set(record) >= {"error_bar", "assumed", "refused"}
        assert (record["step_time_s"] is None) == (record["refused"] is not None)
    with pytest.raises(UnknownNameError, match="unknown configuration 'nobody'"):
        answer["nobody"]
    with pytest.raises(FormatError, match="must be a non-empty list"):
        pipeplan.estimate({"rows": []})


def test_many_rows_on_two_processes_are_those_of_one():
    rows = [{**ONE, "global_batch": 16 + 16 * place} for place in range(FEW + 1)]
    shares: list[float] = []
    answer = pipeplan.estimate({"rows": rows}, workers=2, progress=shares.append)
    assert [row.estimate for row in answer] == [row.estimate for row in pipeplan.estimate({"rows": rows}, workers=1)]
    assert shares[-1] == 1.0


def test_a_store_keeps_estimates_and_belongs_to_its_rows(tmp_path):
    rows = [{**ONE, "global_batch": 16 + 16 * place} for place in range(3)]
    store = tmp_path / "estimates.db"
    first = pipeplan.estimate({"rows": rows}, store=store)
    assert [row.estimate for row in pipeplan.estimate({"rows": rows}, store=store)] == [row.estimate for row in first]
    for other in ({"rows": rows[:2]}, ONE):
        with pytest.raises(InputError, match="another"):
            pipeplan.estimate(other, store=store)
    with pytest.raises(PipeplanError, match="expected the cluster's 16"):
        pipeplan.estimate({**ONE, "dp": 3}, store=tmp_path / "single.db")


def test_one_configuration_is_told_in_a_sentence_and_25_lines(capsys):
    answer = pipeplan.estimate(ONE)
    answer.print()
    output = capsys.readouterr().out
    words = " ".join(output.split())
    assert words.startswith(answer.headline)
    assert next(iter(answer.to_dict())) == "headline"
    for part in ("step 4.", "spent on compute ", "fullest rank weights ", "attention in one kernel (flash) +"):
        assert part in words, part
    assert len(output.splitlines()) <= 25
    assert max(map(len, output.splitlines())) <= 80
    answer.print(verbose=True)
    longer = capsys.readouterr().out
    assert "the step's time, mean of all ranks" in longer
    assert "otherwise" in longer
    assert "--verbose" not in longer


def test_of_many_configurations_the_ten_fastest_are_listed(capsys):
    rows = [{"id": f"pp{2 ** (place % 3)}-{place}", **ONE, "pp": 2 ** (place % 3)} for place in range(12)]
    answer = pipeplan.estimate({"rows": [*rows, {"id": "bad", **ONE, "tp": 3}]})
    answer.print()
    output = capsys.readouterr().out
    assert " ".join(output.split()).startswith(answer.headline)
    fastest = min((row.step_time_s, row.id) for row in answer if row.refused is None)[1]
    assert answer.headline.startswith(f"{fastest} is the fastest of 13 configurations: ")
    assert answer.headline.endswith("; 1 of 13 cannot be estimated")
    assert "2 slower configurations not listed: --all" in output
    assert "bad: tp 3" in output
    assert max(map(len, output.splitlines())) <= 80
    answer.print(all=True)
    assert "not listed" not in capsys.readouterr().out
    assert answer.to_frame()["step_time_s"][0] > 0
    different = pipeplan.estimate({"rows": [ONE, {**ONE, "global_batch": 128}]})
    assert different.headline.startswith("2 configurations of different jobs take 4.")
    refused = pipeplan.estimate({"rows": [{**ONE, "tp": 3}] * 2}).headline
    assert refused.startswith("None of 2 configurations can be estimated: tp 3")


@pytest.mark.parametrize(
    "chosen",
    [
        {"tensor": 2, "pipeline": 4, "data": 2, "chunks": 2, "schedule": "interleaved-1f1b"},
        {"tensor": 2, "pipeline": 4, "data": 2, "schedule": "zb-h1", "recompute": ("full",)},
        {"tensor": 2, "pipeline": 4, "data": 2, "schedule": "zb-auto", "in_flight": 8},
        {"tensor": 8, "data": 2},
    ],
)
def test_the_schedule_of_an_estimate_takes_as_long_as_the_estimate_says(chosen):
    answer = estimated(**chosen)
    result = simulated(SHAPE, MACHINES, answer.configuration)
    assert result.schedule.microbatches == answer.configuration.microbatches
    pipeline = answer.step_time - answer.time.data - answer.time.optimizer
    assert result.makespan == pytest.approx(pipeline, rel=0.01)
    idle = result.bubble.idle_over_total * result.makespan
    assert idle == pytest.approx(answer.time.bubble, rel=0.03, abs=0.002 * answer.step_time)


def test_the_bubble_of_an_estimate_is_that_of_all_ranks_and_that_of_a_review():
    """A last stage of one layer makes its rank idle, and not the others."""
    answer = estimated(pipeline=4, data=4, layers=(11, 11, 9, 1))
    result = simulated(SHAPE, MACHINES, answer.configuration)
    bubble = answer.time.bubble / answer.step_time
    assert bubble == pytest.approx(result.bubble.idle_over_total, abs=0.01)
    assert max(result.timeline.idle) / result.makespan > 2 * bubble
    assert Estimated(SHAPE, MACHINES, answer.configuration, (), guessed=False).bubble == pytest.approx(bubble)


def test_a_trainers_file_needs_its_reader(monkeypatch, tmp_path):
    monkeypatch.setattr("pipeplan.foundation.extensions.extension", lambda name: None)
    script = tmp_path / "train.sh"
    script.write_text("torchrun pretrain_gpt.py --num-layers 32\n")
    with pytest.raises(InputError, match="needs the extension 'review' of pipeplan, which is not installed"):
        pipeplan.estimate(script)
