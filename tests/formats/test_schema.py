"""The published schemas are those of the records, and what is written fits them.

``python -m tests.formats.test_schema`` writes ``docs/schema`` anew.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

import pipeplan
from pipeplan.answers.schemas import every, schema
from pipeplan.costs import Settings
from pipeplan.formats import costs_json, schedule_json, timeline_json
from pipeplan.formats.timeline_table import timeline_columns_json
from pipeplan.simulation import simulate
from tests.formats.schedules import schedules

FOLDER = Path(__file__).parents[2] / "docs" / "schema"
EVERY = pytest.mark.parametrize("name", sorted(every()))


def published(name: str) -> str:
    return json.dumps(schema(name), indent=2) + "\n"


@pytest.mark.needs("search")
@EVERY
def test_the_published_schema_is_current(name):
    assert (FOLDER / f"{name}.json").read_text() == published(name), "run python -m tests.formats.test_schema"


@EVERY
def test_it_is_a_schema(name):
    Draft202012Validator.check_schema(schema(name))
    assert not Draft202012Validator(schema(name)).is_valid({})


def assert_fits(text: str, name: str) -> None:
    validator = Draft202012Validator(schema(name))
    document = json.loads(text)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid(document | {"colour": "red"})


@given(schedules())
@settings(max_examples=15, deadline=None)
def test_what_is_written_fits(schedule):
    costs = Settings().costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    assert_fits(schedule_json(schedule), "pipeplan-schedule")
    assert_fits(timeline_json(timeline), "pipeplan-timeline")
    assert_fits(timeline_columns_json(timeline), "timeline-table")
    assert_fits(costs_json(costs), "pipeplan-costs")


def results() -> Iterator[pipeplan.Result]:
    yield pipeplan.simulate("zbv", ranks=2, activation_bytes=10)
    yield pipeplan.simulate("1f1b", memory_limit="2act")
    yield pipeplan.simulate("1f1b", overlap_times=3, time_unit="ms")
    yield pipeplan.search(ranks=2, microbatches=2, evaluations=10)


@pytest.mark.needs("search")
def test_a_result_fits_wherever_it_is_written():
    for result in results():
        assert_fits(json.dumps(result.to_dict()), "pipeplan-result")
        assert_fits(timeline_json(result.timeline, result.to_dict()), "pipeplan-timeline")
        assert_fits(costs_json(result.costs), "pipeplan-costs")


def test_a_timeline_has_every_figure_of_a_result():
    figures = schema("pipeplan-result")["$defs"]["Result"]["properties"]
    held = schema("pipeplan-timeline")["$defs"]["TimelineRecord"]["properties"]
    assert {name: held[name] for name in figures} == {name: entry | held[name] for name, entry in figures.items()}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for entry in every():
        (FOLDER / f"{entry}.json").write_text(published(entry))
