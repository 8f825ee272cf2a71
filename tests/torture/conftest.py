"""A box around a test that runs commands."""

import os

import pytest

from tests.torture import box


@pytest.fixture(scope="session")
def _box(tmp_path_factory):
    home = tmp_path_factory.mktemp("box").resolve()
    yield box.environment(home)
    box.end_processes(home)


@pytest.fixture
def boxed(_box, tmp_path, monkeypatch):
    """The environment of a box, in which ``tests.torture.forked`` runs commands; gives an empty folder to work in."""
    for name in os.environ:
        if name != "PYTEST_CURRENT_TEST":
            monkeypatch.delenv(name)
    for name, value in _box.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
