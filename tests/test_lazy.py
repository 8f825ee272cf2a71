"""A command loads what it needs, and nothing else."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

from docs.build import stubs
from pipeplan.foundation.lazy import lazy_names

PACKAGES = ["pipeplan.answers", "pipeplan.drawing", "pipeplan.formats", "pipeplan.simulation"]
STUBS = stubs.files()

LOADED = """
import json, sys
from pipeplan.cli import main
main(sys.argv[1:])
print("\\n" + json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded_by(*words: str) -> set[str]:
    """The modules that a new process has loaded when it has run a command."""
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_a_simulation_loads_no_extension_no_other_answer_and_nothing_that_draws():
    loaded = loaded_by("simulate", "-p", "4", "-m", "8", "--json")
    assert [name for name in loaded if name.startswith("pipeplan.extensions")] == []
    assert "pipeplan.foundation.sweeps" not in loaded
    assert loaded.isdisjoint({"matplotlib", "numba", "pandas", "rich", "yaml"})
    answers = {name.split(".")[2] for name in loaded if name.startswith("pipeplan.answers.")}
    assert answers.isdisjoint({"checking", "comparing", "explaining", "exporting", "listing", "pictures", "schemas"})


def test_a_table_loads_no_extension_and_no_other_answer():
    loaded = loaded_by("compare", "1f1b", "zbv", "-p", "4", "-m", "8")
    assert [name for name in loaded if name.startswith("pipeplan.extensions")] == []
    assert "pipeplan.foundation.sweeps" not in loaded
    assert loaded.isdisjoint({"matplotlib", "numba", "pandas", "yaml"})
    answers = {name.split(".")[2] for name in loaded if name.startswith("pipeplan.answers.")}
    assert answers.isdisjoint({"checking", "explaining", "exporting", "listing", "schemas"})


@pytest.mark.needs("search", "planning", "review", "training", "web")
@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.parent.name)
def test_a_stub_has_the_names_of_its_package(path):
    assert path.read_text(encoding="utf-8") == STUBS[path], "run python -m docs.build.stubs --write"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_of_a_package_is_where_the_package_says(package):
    room = import_module(package)
    assert [name for name in room.__all__ if not hasattr(room, name)] == []
    # A module of that name would take the place of what the package means by it as soon as the module is imported.
    modules = {module.name for module in pkgutil.iter_modules(room.__path__)}
    assert modules.isdisjoint(room.__all__)


def test_a_name_that_a_package_does_not_have_is_an_attribute_error():
    _, load, _ = lazy_names("pipeplan.drawing", {"text": "text_of"})
    with pytest.raises(AttributeError, match=r"module 'pipeplan\.drawing' has no attribute 'Views'"):
        load("Views")


def test_a_picture_loads_no_trainer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = loaded_by("simulate", "-p", "4", "-m", "8", "-o", "x.png")
    assert "matplotlib" in loaded
    assert not [name for name in loaded if name.startswith(("pipeplan.trainers", "pipeplan.extensions.planning"))]
