"""``pipeplan search``: its progress, and the files that it keeps."""

import json
import os

import pytest

from pipeplan.answers import simulate
from pipeplan.extensions.search import Published, SearchProgress
from pipeplan.extensions.search.commands import keep_best, progress_text
from pipeplan.model import parse_schedule

pytestmark = pytest.mark.usefixtures("empty_folder")

PLAN = "0F0,0B0\n1F0,1B0\n"


def progress(published: Published | None) -> SearchProgress:
    plan = parse_schedule("0F0 0B0")
    return SearchProgress(2_115_000.0, 2_057_000.0, "", 1, 1.0, 0.5, lambda: plan, published)


def test_a_search_says_its_best_its_bound_and_what_it_has_to_beat():
    said = progress_text(progress(Published("v-half", 2_234_000.0)), "us")
    assert said == "best 2.115 s, -5.3% against v-half; bound 2.057 s, gap 2.8%"
    assert progress_text(progress(None), "us") == "best 2.115 s; bound 2.057 s, gap 2.8%"


def improved(value: float) -> SearchProgress:
    best = simulate("1f1b", ranks=2, microbatches=1).schedule
    return SearchProgress(value, 1.0, "", 1, 0.0, 0.0, lambda: best)


def test_the_best_so_far_is_kept_in_files_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.commands.time.monotonic", iter(range(0, 100, 10)).__next__)
    pipe, file = tmp_path / "pipe.csv", tmp_path / "file.csv"
    os.mkfifo(pipe)
    keep = keep_best([pipe, tmp_path / "missing" / "a.csv", file])
    keep(improved(9.0))
    assert file.read_text() == PLAN
    file.unlink()
    keep(improved(9.0))
    assert not file.exists()
    keep(improved(8.0))
    assert file.read_text() == PLAN


QUICK_SEARCH = "search -p 4 -m 8 --evaluations 20 --no-visualization"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"{QUICK_SEARCH} --slices 2 -o x.csv", "x.csv cannot hold it: PyTorch's CSV does not support sequence slices"),
        (f"{QUICK_SEARCH} --placement wave -o x.torchtitan.sh", "this schedule's placement is wave"),
        (f"{QUICK_SEARCH} --placement bidirectional -o x.comms.csv", "a bidirectional placement has two"),
        (f"{QUICK_SEARCH} --placement linear -o x.zb.txt", "needs a V schedule"),
        (f"{QUICK_SEARCH} -o x.megatron.sh", "x.megatron.sh cannot hold it: Megatron-LM"),
        (
            f"{QUICK_SEARCH} --full-backward -o x.megatron.sh",
            "x.megatron.sh cannot hold it: search differs from the order that Megatron-LM generates",
        ),
    ],
)
def test_a_file_that_could_hold_no_answer_is_refused_before_the_search(run, monkeypatch, line, reason):
    monkeypatch.setattr(
        "pipeplan.extensions.search.answers.searches.best_placement", lambda *_, **__: pytest.fail("searched")
    )
    code, _, err = run(line)
    assert code == 2
    assert reason in err


RANKS = {"loop": [*range(4)] * 2, "v": [0, 1, 2, 3, 3, 2, 1, 0], "wave": [0, 1, 2, 3, 3, 2, 1, 0] * 2}


@pytest.mark.parametrize(("name", "placement"), [("x.torchtitan.sh", "loop"), ("x.zb.txt", "v"), ("x.json", "wave")])
def test_a_search_finds_what_its_file_can_hold(run, name, placement):
    code, out, err = run(f"{QUICK_SEARCH} -o {name} --json")
    assert code == 0, err
    assert json.loads(out)["placement"] == RANKS[placement]
    assert f"wrote {name}" in err


def test_a_sliced_schedule_is_no_answer_for_a_file_without_slices(run):
    line = "search -c gpt-6.2b-24 -p 4 -m 12 --memory-limit 8.8GiB --allow slices --evaluations 20 --no-visualization --json"
    assert json.loads(run(line)[1])["slices"] == 4
    code, out, _ = run(f"{line} -o x.csv")
    assert (code, json.loads(out)["slices"]) == (0, 1)
