"""The runs that the repository holds itself."""

import json

import pytest

from benchmarks.published_runs.files import COLLECTED, read_runs
from benchmarks.published_runs.sources import RUNS


@pytest.fixture(scope="module")
def documents():
    return json.loads(COLLECTED.read_text())["rows"]


def test_every_collected_run_is_read_or_refused_with_a_sentence():
    rows = read_runs(COLLECTED)
    assert len(rows) >= 80
    assert all(row.configuration is not None or row.refused for row in rows)
    # A row without a step time or a peak measures nothing that is predicted.
    assert [
        row.id for row in rows if not row.refused and row.measured.step_time is row.measured.peak_bytes is None
    ] == []


def test_collected_runs_have_their_own_ids_and_an_address_each(documents):
    ids = [document["id"] for document in documents]
    shared = [path for path in RUNS if path != COLLECTED and path.exists()]
    others = {document["id"] for path in shared for document in json.loads(path.read_text())["rows"]}
    assert len(set(ids)) == len(ids)
    assert others.isdisjoint(ids)
    assert all(document["source"]["url"].startswith("https://") for document in documents)
