"""What a search is told beside its costs: what it may decide, how transfers behave, on which placements."""

from typing import Any

import msgspec
import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.costs import Settings, names_of
from pipeplan.extensions.search import CHOICES, Choices
from pipeplan.extensions.search.answers.options import SearchOptions
from pipeplan.extensions.search.answers.problems import choices_of, placement_named, problem_of
from pipeplan.extensions.search.answers.search_record import Decided, Price, decided_in
from pipeplan.extensions.search.answers.search_words import decided_in_words, decisions_of
from pipeplan.foundation.errors import InputError, PipeplanError, ShapeError, UnknownNameError
from pipeplan.foundation.readable import transfers_in_words
from pipeplan.passes import insert_recompute

SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 4, "p2p_time": 0.25}


def test_names_come_one_by_one_or_with_commas():
    assert names_of("recompute, offload") == names_of(["recompute", "offload"]) == ["recompute", "offload"]
    assert names_of(("recompute,offload", "split")) == ["recompute", "offload", "split"]
    assert choices_of("recompute", "overlap,weight-order,split") == Choices(
        split=False, overlap=False, weight_order=False, recompute=True
    )


def test_the_options_are_the_problems():
    problem = problem_of(Settings(ranks=2, communication="streams"), SearchOptions(decide="recompute"))
    assert problem.choices.names == ("split", "overlap", "weight-order", "recompute")
    assert problem.communication == "streams"


@pytest.mark.parametrize(
    ("settings", "options", "error", "field", "says"),
    [
        (
            {},
            {"decide": "recompute", "leave": "recompute"},
            InputError,
            "leave",
            "recompute is in both decide and leave",
        ),
        ({}, {"decide": "recomputed"}, UnknownNameError, None, "did you mean 'recompute'"),
        ({}, {"leave": ["nothing"]}, UnknownNameError, None, "'nothing'"),
        ({"recompute": "all"}, {"decide": "recompute"}, InputError, "recompute", "drop recompute or decide=recompute"),
        ({"recompute": "0-1"}, {}, InputError, "recompute", "drop recompute 0-1, use decide recompute"),
        ({"offload": (0, 1), "offload_times": 1}, {}, InputError, "offload", "drop offload 0,1, use decide offload"),
        (
            {"offload": "all", "offload_times": 1},
            {"decide": "offload"},
            InputError,
            "offload",
            "drop offload or decide",
        ),
        (
            {},
            {"decide": "offload"},
            InputError,
            "offload_bandwidth",
            "set offload_times, or offload_bandwidth and activation_bytes",
        ),
        ({}, {"decide": "overlap"}, InputError, "overlap_times", "overlap needs overlap_times"),
        ({"recompute_times": 0.0}, {"decide": "recompute"}, PipeplanError, "recompute_times", "must be more than 0"),
        ({"communication": "blocking"}, {}, InputError, "communication", "communication blocking: use streams"),
        ({"ranks": 3}, {"placement": "bidirectional"}, ShapeError, "ranks", "needs an even number of ranks, not 3"),
        ({"microbatches": 3}, {"placement": "bidirectional-v"}, ShapeError, "microbatches", "equally among 2 model"),
        ({"chunks": 2}, {"placement": "bidirectional"}, ShapeError, "chunks", "use placement bidirectional-v"),
        ({"chunks": 4}, {"placement": "bidirectional-v"}, ShapeError, "chunks", "use placement wave or loop"),
    ],
)
def test_what_cannot_be_asked(settings, options, error, field, says):
    with pytest.raises(error, match=says) as raised:
        pipeplan.search(**(SHAPE | settings), **options, evaluations=10)
    assert raised.value.field == field or field is None


def test_placements_of_two_copies():
    both = placement_named("bidirectional-v", Settings(ranks=2))
    assert both.rank_of == ((0, 1, 1, 0), (1, 0, 0, 1))
    found = pipeplan.search(**SHAPE, placement="bidirectional-v", static_bytes=3, activation_bytes=1, evaluations=50)
    alone = pipeplan.search(**SHAPE, placement="v", static_bytes=3, activation_bytes=1, evaluations=50)
    for result, held in ((found, 6), (alone, 3)):
        assert result.memory.peak_bytes is not None
        assert result.memory.static.tolist() == [held, held]
    assert found.bound.value <= found.makespan


def test_every_choice_is_named_by_the_help(capsys):
    main(["search", "--help-all"])
    text = capsys.readouterr().out
    assert [name for name in CHOICES if name not in text] == []


def test_what_was_decided_has_its_price():
    problem = problem_of(Settings(ranks=2, activation_bytes=2.0**30, static_bytes=0), SearchOptions(decide="recompute"))
    kept = pipeplan.simulate("1f1b", ranks=2).schedule
    again = decided_in(insert_recompute(kept, [0]), problem)
    assert (again.recomputed, again.offloaded, again.split_backwards) == ((8, 0), (0, 0), 0)
    assert again.prices["recompute"].rank == 0
    assert again.prices["recompute"].time > 0
    words = decided_in_words(again)
    assert words[0].startswith("recomputes all 8 microbatches on stage 0: costs ")
    assert words[0].endswith("on rank 0")
    assert decided_in_words(decided_in(kept, problem))[0] == "recomputes nothing"


def decided(*recomputed: int, microbatches: int = 8, price: Price | None = None, **more: Any) -> Decided:
    counts: dict[str, Any] = {"offloaded": (0,) * 5, "full_backwards": 0, "split_backwards": 0, "overlapped_pairs": 0}
    prices: Any = {} if price is None else {"recompute": price}
    figures = counts | {"choices": ("recompute",), "prices": prices} | more
    return Decided(recomputed=recomputed, microbatches=microbatches, **figures)


def test_what_was_decided_in_words():
    price = Price(time=0.012, memory=3.1 * 2**30, rank=0, in_bytes=True)
    some = decided(0, 0, 3, 24, 24, microbatches=24, price=price, choices=("split", "recompute", "offload"))
    some = msgspec.structs.replace(some, full_backwards=2, split_backwards=118, overlapped_pairs=7)
    assert decided_in_words(some) == (
        "recomputes 3 of 24 microbatches on stage 2, all 24 on stages 3-4: costs 1.2% of the time, saves 3.1 GiB on rank 0",
        "offloads nothing",
        "splits 118 of 120 backwards",
        "overlaps 7 pairs of a forward and a backward",
    )
    many = decided(1, 2, 8, 0, 3, price=Price(time=0.0, memory=1.0, rank=2))
    assert decided_in_words(many) == (
        "recomputes 1 to 8 of 8 microbatches on stages 0-2,4: costs no time, saves 1 activation on rank 2",
    )
    no_less = decided(1, price=Price(time=0.0, memory=0.0, rank=0))
    assert decided_in_words(no_less)[0].endswith("costs no time, saves nothing at the peak")
    assert decided_in_words(decided(0, choices=("recompute", "offload"))) == ("recomputes and offloads nothing",)


def test_a_search_that_may_recompute_needs_less_memory_and_is_held_against_recomputing_everything(tmp_path, capsys):
    shape = {"ranks": 2, "microbatches": 4, "memory_limit": "1act", "placement": "v"}
    found = pipeplan.search(**shape, decide="recompute", evaluations=500)  # type: ignore[arg-type]
    decided = found.search.decided
    assert sum(decided.recomputed) > 0
    assert found.memory.peak_activation.max() <= 1
    assert found.search.best_published.schedule.endswith("all recomputed")
    assert found.search.objective.value <= found.search.best_published.value
    kept = pipeplan.search(**shape, evaluations=500)  # type: ignore[arg-type]
    assert found.makespan < kept.makespan
    found.save(tmp_path / "again.json")
    assert pipeplan.simulate(tmp_path / "again.json", p2p_time=0).makespan == pytest.approx(found.makespan)
    found.print()
    assert "decided recomputes " in " ".join(capsys.readouterr().out.split())


def test_sequences_that_are_cut():
    found = pipeplan.search(ranks=2, microbatches=2, slices=2, placement="linear", evaluations=200)
    assert found.schedule.slices == 2
    assert found.search.objective.value <= found.search.best_published.value
    with pytest.raises(ShapeError, match="gpipe does not support sequence slices"):
        pipeplan.search(ranks=2, microbatches=2, slices=2, start="gpipe", evaluations=10)


def test_what_was_decided_is_told_in_sentences(capsys):
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 3, "placement": "v", "evaluations": 20}
    little = pipeplan.search(**shape, memory_limit="0.5act", decide="recompute").search
    (sentence,) = decisions_of(little)
    assert sentence.startswith("It recomputes ")
    plain = pipeplan.search(**shape, communication="streams")
    assert decisions_of(plain.search) == ()
    assert plain.to_dict()["communication"] == "streams"
    assert plain.search.objective.value == plain.makespan
    plain.print(verbose=True)
    assert f"transfers {transfers_in_words('streams', 'rank')}" in " ".join(capsys.readouterr().out.split())
