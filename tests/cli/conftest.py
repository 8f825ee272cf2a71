"""Every test of the command line runs in an empty folder, 80 columns wide."""

import pytest


@pytest.fixture(autouse=True)
def _in_an_empty_folder(empty_folder):
    pass
