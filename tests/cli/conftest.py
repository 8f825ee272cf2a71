"""A command line in an empty folder, 80 columns wide."""

import pytest

from pipeplan.cli import main


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def run(capsys):
    def run(line: str) -> tuple[int, str, str]:
        code = main(line.split())
        return code, *capsys.readouterr()

    return run
