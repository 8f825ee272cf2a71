"""``import pipeplan``: every public name is there, and none costs anything before it is used."""

import importlib
import subprocess
import sys

import pytest

import pipeplan


def test_every_public_name_is_there():
    for name in pipeplan.__all__:
        assert getattr(pipeplan, name).__doc__, name
    assert set(pipeplan.__all__) <= set(dir(pipeplan))
    assert pipeplan.__version__


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'simulation'"):
        _ = pipeplan.simulation


@pytest.mark.parametrize("name", ["simulate", "check"])
def test_functions_keep_their_names_though_subpackages_share_them(name):
    module = importlib.import_module(f"pipeplan.{name}")
    assert getattr(pipeplan, name) is not module
    assert callable(getattr(pipeplan, name))


def test_importing_pipeplan_imports_nothing_heavy():
    code = (
        "import sys, pipeplan; light = set(sys.modules); pipeplan.simulate();"
        "print([m for m in ('numpy', 'msgspec') if m in light],"
        "[m for m in ('matplotlib', 'numba', 'cyclopts', 'rich', 'yaml') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[] []\n"
