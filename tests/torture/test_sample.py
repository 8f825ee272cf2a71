"""A few cases of every suite; ``make torture`` tries them for as long as one likes."""

import pytest

from tests.torture.suites import SUITES
from tests.torture.tally import reproducing
from tests.torture.worker import Worker


@pytest.fixture(scope="session")
def worker(tmp_path_factory):
    home = tmp_path_factory.mktemp("torture").resolve()
    worker = Worker("tests.torture.suites", home, home / "kernels")
    yield worker
    worker.end()


@pytest.mark.parametrize("suite", SUITES, ids=[suite.name for suite in SUITES])
def test_nothing_is_found_in_the_sample_of(suite, worker):
    why = suite.needs()
    if why is not None:
        pytest.skip(why)
    found = [worker.tried(suite, seed) for seed in range(suite.sample)]
    assert [reproducing(verdict) for verdict in found if verdict.fault is not None] == []


def test_suites_have_names_of_their_own_and_say_what_they_are():
    assert len({suite.name for suite in SUITES}) == len(SUITES)
    assert all(suite.about and suite.share > 0 and suite.sample >= 0 for suite in SUITES)
