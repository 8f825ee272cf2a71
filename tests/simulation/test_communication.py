"""Communication inside ops: exposed where nothing computes beside it, hidden in pairs and behind delayed weights."""

from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.costs import Settings
from pipeplan.model import parse_schedule
from pipeplan.simulation import inner_communication, simulate, what_ifs, with_op_times

EXPERTS = [{"compute": 1.0}, {"all_to_all": 1.0}, {"compute": 1.0}]
SEGMENTS: dict[str, Any] = {
    "forward": EXPERTS,
    "backward_input": EXPERTS,
    "backward_weight": [{"compute": 0.5}, {"compute": 0.5}],
}


def communication(text: str, **settings):
    schedule = parse_schedule(text)
    costs = Settings(segments=SEGMENTS, **settings).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    assert costs.segments is not None
    exposed, hidden = inner_communication(timeline, costs.segments)
    return exposed.tolist(), hidden.tolist(), timeline.makespan


def test_pairs_and_delayed_weights_hide_what_ops_alone_expose():
    # b0 1.5, f0 2.5 beside b1's message, b1 4 beside f1's message, f1 5.
    assert communication("0F0 (0F1;0B0)OVERLAP_F_B 0B1") == ([2.0], [2.0], 3 + 5 + 4)
    assert communication("0F0 0B0") == ([2.0], [0.0], 7.0)
    # b0 1, f0 2 beside b1's message, b1 3 beside f1's message, f1 4.
    assert communication("0F0 (0F1;0I0)OVERLAP_F_B 0W0 0I1 0W1") == ([2.0], [2.0], 3 + 4 + 1 + 3 + 1)
    # The message is sent at 1, and W computes until 1.5.
    assert communication("0F0 0B0", delayed_weights=True) == ([1.5], [0.5], 3 + 3.5)


def test_each_rank_has_its_own_and_factors_scale_it():
    text = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"
    assert communication(text)[:2] == ([4.0, 4.0], [0.0, 0.0])
    assert communication(text, microbatch_factors=[1.0, 3.0])[:2] == ([8.0, 8.0], [0.0, 0.0])


def test_one_entry_is_for_all_chunks_of_a_rank_as_one_time_is():
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 4, "segments": SEGMENTS}
    work = {name: pipeplan.simulate(name, **shape).work for name in ("1f1b", "zbv")}
    assert work["zbv"] == pytest.approx(work["1f1b"])
    per_stage = pipeplan.simulate("zbv", **shape, times_per="stage").work
    assert per_stage == pytest.approx([2 * time for time in work["1f1b"]])


PAIR = parse_schedule("0F0 0F1 0B0 0B1\n1F0 (1F1;1B0)OVERLAP_F_B 1B1")


def makespans(**settings: Any) -> dict[str, float]:
    """Makespans of the schedule with a pair as it is, and with each change."""
    now = simulate(PAIR, Settings(**settings).costs(PAIR.placement))
    return {"": now.timeline.makespan} | {what.change: what.makespan for what in what_ifs(now)}


@pytest.mark.parametrize("delayed", [False, True])
def test_faster_and_free_communication_are_among_what_ifs(delayed):
    changes = makespans(segments=SEGMENTS, delayed_weights=delayed)
    for change, time in (("twice as fast", 0.5), ("free", 0.0)):
        parts = [{"compute": 1.0}, {"all_to_all": time}, {"compute": 1.0}]
        faster = makespans(segments=SEGMENTS | {"forward": parts, "backward_input": parts}, delayed_weights=delayed)
        assert changes[f"communication in ops {change}"] == pytest.approx(faster[""])
    only = makespans(segments=SEGMENTS | {"forward": [{"all_to_all": 2.0}]}, delayed_weights=delayed)
    assert "communication in ops free" not in only


def test_balanced_stages_keep_the_share_that_their_pairs_save():
    uneven = makespans(segments=[SEGMENTS, SEGMENTS | {"forward": [{"compute": 5.0}, {"all_to_all": 2.0}]}])
    assert uneven["all stages balanced"] < uneven[""]
    table = [[3.2, 4.0], [4.0, 4.8]]
    changes = makespans(forward_times=[2.0, 3.0], backward_times=[2.0, 3.0], overlap_times=table)
    even = makespans(forward_times=2.5, backward_times=2.5, overlap_times=4.0)
    assert changes["all stages balanced"] == pytest.approx(even[""])


TABLE = np.array([[2.5, 4.5], [3.5, 5.0]])


def test_own_times_of_pairs_are_a_list_or_a_table_of_both_stages():
    times: dict[str, Any] = {"forward_times": [1.0, 2.0], "backward_times": [2.0, 4.0]}
    settings = Settings(**times, overlap_times=TABLE.tolist())

    def fitted(text):
        schedule = parse_schedule(text)
        timeline = simulate(schedule, settings.costs(schedule.placement)).timeline
        return with_op_times(timeline, Settings(segments=SEGMENTS, delayed_weights=True))

    one = fitted("0F0 1F0 (0F1;1B0)OVERLAP_F_B (1F1;0B0)OVERLAP_F_B 1B1 0B1")
    assert one.overlap_times == (4.5, 4.0)  # at least the backward of the same stage
    assert one.segments is None
    both = fitted("0F0 1F0 (0F1;1B0)OVERLAP_F_B (0F2;0B0)OVERLAP_F_B 1F1 (1F2;1B1)OVERLAP_F_B 0B1 1B2 0B2")
    assert both.overlap_times is not None
    # 1F never ran beside 0B.
    np.testing.assert_allclose(np.array(both.overlap_times), [[2.5, 4.5], [4 * (2.5 / 3 + 4.5 / 5 + 5 / 6) / 3, 5.0]])


def test_explanations_have_it_by_rank_and_in_a_sentence():
    answer = pipeplan.explain("1f1b-overlap", ranks=2, microbatches=4, segments=SEGMENTS, time_unit="s")
    record = answer.to_dict()["explain"]["communication"]
    assert record["kinds"] == "all-to-all"
    assert sum(record["exposed"]) + sum(record["hidden"]) == pytest.approx(2 * 4 * 2)
    exposed, hidden = (f"{sum(record[name]):g} s" for name in ("exposed", "hidden"))
    assert any(f"(all-to-all): exposed {exposed}, hidden {hidden} (" in text for text in answer.sentences)
    assert [row["hidden in ops"] for row in answer._rows()] == record["hidden"]
    plain = pipeplan.explain("1f1b-overlap", ranks=2, microbatches=4)
    assert "communication" not in plain.to_dict()["explain"]


@pytest.mark.parametrize(
    ("schedule", "settings", "note"),
    [
        ("1f1b", {"overlap_times": 2.5}, "overlap times have no effect: the schedule overlaps no forward"),
        ("1f1b", {"segments": SEGMENTS}, "all-to-all in ops is exposed: the schedule overlaps no forward"),
        ("zb-h1", {"segments": SEGMENTS, "delayed_weights": True}, "delayed weights have no effect"),
        ("1f1b", {"segments": SEGMENTS, "pair_slowdown": 1.5}, "pair slowdown has no effect"),
        ("1f1b", {"segments": SEGMENTS, "delayed_weights": True, "pair_slowdown": 1.5}, None),
        ("1f1b-overlap", {"overlap_times": 2.5}, None),
        ("1f1b-overlap", {"segments": SEGMENTS}, None),
    ],
)
def test_settings_of_pairs_without_pairs_are_noted(schedule, settings, note):
    notes = pipeplan.simulate(schedule, ranks=2, microbatches=4, **settings).notes
    found = [text for text in notes if "overlaps no forward with a backward" in text]
    assert any(text.startswith(note) for text in found) if note is not None else not found
