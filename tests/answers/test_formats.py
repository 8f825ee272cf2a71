"""The table of formats is the only place that names them, and what derives from it is current.

``python -m tests.answers.test_formats`` writes ``docs/reference/formats.md`` anew.
"""

import json
from pathlib import Path

import pytest

import pipeplan
from docs.build.formats import formats_page
from pipeplan.answers.answers import contents_of
from pipeplan.answers.outputs import all_formats, content_as, output_endings
from pipeplan.costs import Costs
from pipeplan.formats import parse, read_file
from pipeplan.model import Schedule, Timeline

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
WRITTEN = [entry for entry in all_formats().values() if entry.writers]


@pytest.mark.needs("training")
def test_the_page_is_current():
    assert PAGE.read_text() == formats_page(), "run python -m tests.answers.test_formats"


def test_names_and_endings_say_which_format_is_meant():
    declared = list(all_formats().values())
    assert all(entry.name == name for name, entry in all_formats().items())
    assert all(entry.title and entry.help.endswith(".") and entry.ending.startswith(".") for entry in declared)
    holds = [(entry.ending, content) for entry in WRITTEN for content in entry.writers]
    assert len(holds) == len(set(holds))
    assert output_endings() == tuple(entry.ending for entry in WRITTEN)


@pytest.mark.parametrize("chosen", WRITTEN, ids=lambda entry: entry.name)
def test_every_format_is_written_of_a_result_and_read_back(chosen, tmp_path):
    result = pipeplan.simulate("1f1b" if chosen.name.startswith("megatron") else "zbv", ranks=2, microbatches=4)
    path = tmp_path / f"file{chosen.ending}"
    result.save(path)
    assert path.stat().st_size > 0
    if chosen.read is not None:
        answer = read_file(path)
        assert content_as(chosen, contents_of(answer)).startswith(path.read_bytes()[:20])


def test_the_longest_ending_counts(tmp_path):
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=2)
    for ending, start in ((".csv", "0F0"), (".timeline.csv", "schedule,"), (".comms.csv", "0UNSHARD")):
        result.save(str(tmp_path / f"a{ending}"))
        assert (tmp_path / f"a{ending}").read_text().startswith(start)
    result.save(tmp_path / "a.costs.json")
    assert json.loads((tmp_path / "a.costs.json").read_text())["format"] == "pipeplan-costs"


def test_text_says_its_format_where_the_ending_does_not():
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=2)
    kinds = {"torch-csv": Schedule, "timeline-csv": Timeline, "timeline-columns": Timeline, "costs": Costs}
    for name, kind in kinds.items():
        assert isinstance(parse(str(pipeplan.export(result, to=name)), f"a{all_formats()[name].suffix}"), kind)


if __name__ == "__main__":
    PAGE.write_text(formats_page())
