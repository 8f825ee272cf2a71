"""Plugins: registered at run time, or declared by the entry points of an installed package."""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.answers import all_formats
from pipeplan.answers.outputs import output_endings
from pipeplan.cli import main
from pipeplan.costs import SettingsKeywords
from pipeplan.extensions.planning.hardware import PRESETS, gpu
from pipeplan.extensions.planning.workload import MODELS, model
from pipeplan.formats import TrainerSettings, formats
from pipeplan.foundation.errors import InputError, PluginError, UnknownNameError
from pipeplan.foundation.registry import PluginWarning, Registry
from pipeplan.strategies import STRATEGIES, FromCosts
from pipeplan.trainers import TRAINERS, Trainer

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"


@dataclass(frozen=True)
class Thing:
    """What the registry of these tests holds."""

    name: str
    aliases: tuple[str, ...] = ()


MODULE_THINGS = (Thing("many-1"), Thing("many-2"))
SOLE_THING = Thing("sole", aliases=("only",))
BUILT_IN_THING = Thing("built-in")
NO_THING = 3


def things(monkeypatch: pytest.MonkeyPatch, **entries: str) -> Registry[Thing]:
    """A registry with one built-in thing, and plugins by the names of this module's constants."""
    result = [EntryPoint(name, f"{__name__}:{value}", "pipeplan.things") for name, value in entries.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: result)
    return Registry(
        "pipeplan.things",
        Thing,
        "thing",
        lambda: [Thing("built-in", ("first",))],
        names=lambda it: (it.name, *it.aliases),
    )


def test_plugins_are_loaded_only_for_unknown_names_and_lists(monkeypatch):
    table = things(monkeypatch, sole="SOLE_THING", many="MODULE_THINGS")
    assert table.find("FIRST") is table["built-in"]
    assert list(table.known) == ["built-in"]
    assert table.find("Sole") == SOLE_THING
    assert list(table.known) == ["built-in", "sole"]
    assert table.find("only") == SOLE_THING
    assert table.matching(lambda it: it.name == "built-in") == [table["built-in"]]
    assert list(table.known) == ["built-in", "sole"]
    assert list(table) == ["built-in", "sole", "many-1", "many-2"]
    assert len(table) == 4
    assert table.find("nothing") is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("MISSING", "the plugin 'bad' cannot be loaded from .*:MISSING .AttributeError: .*; upgrade or uninstall it"),
        ("NO_THING", "the plugin 'bad' cannot be loaded .*TypeError"),
        ("EXAMPLE.parts", "the plugin 'bad' is invalid: expected a Thing, not str"),
        ("BUILT_IN_THING", "the plugin 'bad' is invalid: cannot register the thing 'built-in': .* choose another name"),
    ],
)
def test_a_broken_plugin_is_an_error_for_its_name_and_a_warning_in_lists(monkeypatch, value, message):
    table = things(monkeypatch, bad=value, sole="SOLE_THING")
    for _ in range(2):
        with pytest.raises(PluginError, match=message):
            table.find("bad")
    listed = things(monkeypatch, bad=value, sole="SOLE_THING")
    with pytest.warns(PluginWarning, match=message):
        assert list(listed) == ["built-in", "sole"]
    assert list(listed) == ["built-in", "sole"]


def test_what_is_registered_at_run_time_wins_over_a_plugin_and_is_replaced_by_the_next(monkeypatch):
    table = things(monkeypatch, sole="SOLE_THING")
    table.add(Thing("sole", ("a",)))
    assert list(table.values()) == [table["built-in"], Thing("sole", ("a",))]
    table.add(Thing("Sole", ("b",)))
    assert list(table) == ["built-in", "Sole"]
    assert table.find("a") is None
    table.remove("Sole")
    assert list(table) == ["built-in"]
    with pytest.raises(UnknownNameError, match="unknown registered thing 'built-in'"):
        table.remove("built-in")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "expected a Thing, not int"),
        (Thing("a b"), "invalid name 'a b' of a thing"),
        (Thing("a/b"), "invalid name 'a/b' of a thing"),
        (Thing("First"), "'First' is a built-in thing; choose another name"),
        (Thing("new", ("BUILT-IN",)), "cannot register the thing 'new': 'BUILT-IN' is a built-in thing"),
    ],
)
def test_what_cannot_be_registered(monkeypatch, value, message):
    table = things(monkeypatch)
    with pytest.raises(InputError, match=message):
        table.add(value)
    assert list(table) == ["built-in"]


LIFO = replace(STRATEGIES["gpipe"], name="lifo", title="last in, first out", aliases=("stack",))
WORDS = replace(formats()["rows"], name="words", title="Words", ending=".words")


def small(schedule, training):
    return TrainerSettings(text=f"stages: {schedule.stages}\n")


SMALL = Trainer(
    name="small",
    title="small",
    software="megatron-core",
    plans="none",
    formats=(replace(WORDS, name="small", ending=".small", write_schedule=None, read=None, write_settings=small),),
)


H99 = replace(PRESETS["h100-sxm"], gpu=replace(gpu("h100"), name="h99"), aliases=())
TABLES: dict[str, Registry[Any]] = {
    "lifo": STRATEGIES,
    "words": formats(),
    "small": TRAINERS,
    "gpt-mine": MODELS,
    "h99": PRESETS,
}


@pytest.fixture
def registered():
    """A plugin of every kind."""
    pipeplan.register(LIFO, WORDS, SMALL, replace(model("gpt2"), name="gpt-mine"), H99)
    yield
    for name, table in TABLES.items():
        table.remove(name)


def test_a_registered_strategy_takes_part_everywhere(registered, capsys):
    shape: SettingsKeywords = {"ranks": 2, "microbatches": 2}
    assert pipeplan.simulate("LIFO", **shape).name == pipeplan.simulate("stack", **shape).name == "lifo"
    assert "lifo" in pipeplan.compare(**shape)
    assert pipeplan.compare(["lifo", "zbv"], **shape)["stack"].makespan == 9
    assert "lifo" in pipeplan.schedules()
    assert pipeplan.schedules("lifo").schedules[0].title == "last in, first out"
    assert str(pipeplan.export("lifo", to="rows", **shape)) == "0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n"
    assert main(["simulate", "lifo", "-p", "2", "-m", "2", "--no-visualization"]) == 0
    assert "lifo" in capsys.readouterr().out
    with pytest.raises(UnknownNameError, match="did you mean 'lifo'"):
        pipeplan.simulate("lifi")


def test_a_fault_of_a_plugin_names_it_and_ends_nothing_else(capsys):
    def faulty(shape):
        """Fail, as the code of others may."""
        return shape.lanes

    def faulty_too(shape, costs, limits):
        return faulty(shape)

    message = "the schedule 'faulty' of a plugin fails on 2 ranks and 4 microbatches (AttributeError: 'Shape'"
    build = STRATEGIES["zb-auto"].build
    assert isinstance(build, FromCosts)
    for changes in ({"build": faulty}, {"build": replace(build, build=faulty_too)}):
        pipeplan.register(replace(LIFO, name="faulty", aliases=(), **changes))
        try:
            comparison = pipeplan.compare(ranks=2, microbatches=4)
            assert "1f1b" in comparison
            assert "faulty" not in comparison
            assert main(["schedules"]) == 0
            assert main(["simulate", "faulty", "-p", "2", "-m", "4"]) == 2
            assert f"pipeplan: {message}" in capsys.readouterr().err
            assert pipeplan.schedules("faulty")["faulty"].looks_at_costs == isinstance(changes["build"], FromCosts)
        finally:
            STRATEGIES.remove("faulty")


def test_other_registered_plugins_take_part(registered, tmp_path, capsys):
    assert {"words", "small"} <= all_formats().keys()
    assert {".words", ".small"} <= set(output_endings())
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=2)
    result.save(tmp_path / "a.words")
    assert pipeplan.simulate(tmp_path / "a.words").schedule == replace(result.schedule, name="a")
    assert pipeplan.read_schedule(tmp_path / "a.words").ranks == result.ranks
    assert str(pipeplan.export("1f1b", to="small", ranks=2)) == "stages: 2\n"
    assert pipeplan.check("1f1b", trainer="small", ranks=2).valid
    assert main(["check", "1f1b", "-p", "2", "--for", "small"]) == 0
    assert main(["check", "1f1b", "-p", "2", "--for", "smell"]) == 2
    assert "unknown trainer 'smell'; did you mean 'small'?" in capsys.readouterr().err
    assert "gpt-mine" in [shape.name for shape in pipeplan.models()]
    assert model("GPT mine").layers == model("gpt2").layers
    assert "h99" in [preset.gpu.name for preset in pipeplan.gpus()]


def test_a_strategy_object_is_a_schedule_without_being_registered():
    shape: SettingsKeywords = {"ranks": 2, "microbatches": 4}
    assert pipeplan.simulate(LIFO, **shape).makespan == 15
    assert {result.name for result in pipeplan.compare(LIFO, "1f1b", **shape)} == {"lifo", "1f1b"}
    assert pipeplan.explain(LIFO, **shape).name == "lifo"
    assert pipeplan.check(LIFO, **shape).valid
    assert pipeplan.schedules(LIFO).schedules[0].title == "last in, first out"
    assert pipeplan.search(start=[LIFO, "1f1b"], evaluations=20, placement="linear", **shape).makespan <= 15
    assert str(pipeplan.export(LIFO, to="rows", **shape)).startswith("0F0 0F1")
    assert "lifo" not in pipeplan.schedules()
    with pytest.raises(UnknownNameError, match="unknown schedule 'lifo'"):
        pipeplan.simulate("lifo")


# --- installed packages ------------------------------------------------------------------------------------------------

COMMANDS = """
import sys, pipeplan
from pipeplan.cli import main
from pipeplan.costs import SettingsKeywords
from pipeplan.formats import formats
from pipeplan.strategies import STRATEGIES, FromCosts

assert pipeplan.simulate("1f1b", ranks=2, microbatches=2).makespan == 9
assert "importlib.metadata" not in sys.modules and "pipeplan_lifo" not in sys.modules
assert main(["simulate", "lifo", "-p", "2", "-m", "2", "--no-visualization", "-o", "order.words"]) == 0
assert open("order.words").read() == "0F0 0F1 0B1 0B0\\n1F0 1F1 1B1 1B0\\n"
assert main(["check", "order.words"]) == 0
assert main(["export", "order.words", "-o", "order.csv"]) == 0
assert main(["export", "lifo", "-p", "2", "-m", "2", "--to", "words"]) == 0
assert main(["compare", "-p", "2", "-m", "2", "--no-visualization", "--json"]) == 0
assert main(["schedules", "lifo"]) == 0
assert main(["export"]) == 0
assert "lifo" in STRATEGIES and "words" in formats()
"""


def run(command: list[str], folder: Path, *paths: Path) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (*paths, *filter(None, sys.path))))}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def declared(folder: Path) -> Path:
    """Write the metadata that an installation of the example has, from its pyproject.toml."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines: list[str] = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def test_the_entry_points_of_a_package_are_found(tmp_path):
    text = run(["-c", COMMANDS], tmp_path, declared(tmp_path / "site"), EXAMPLE / "src")
    assert "last one first" in text
    assert '"schedule": "lifo"' in text
    assert "words" in text


def test_a_package_that_cannot_be_loaded_is_one_line(tmp_path):
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pipeplan.strategies]\nbroken = nowhere:X\n")
    done = subprocess.run(
        [sys.executable, "-m", "pipeplan", "compare", "-p", "2", "-m", "4", "--json"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == (
        "pipeplan: warning: the plugin 'broken' of the package broken cannot be loaded from nowhere:X "
        "(ModuleNotFoundError: No module named 'nowhere'); upgrade or uninstall it\n"
    )


@pytest.mark.slow
def test_the_example_is_installed_by_pip_and_passes_its_own_tests(tmp_path):
    """Without a network: setuptools, which builds it, is installed."""
    pytest.importorskip("setuptools")
    copied = shutil.copytree(EXAMPLE, tmp_path / "plugin")
    site = tmp_path / "site"
    pip = ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(site)]
    run([*pip, str(copied)], tmp_path)
    tested = f"import pytest\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {str(copied / 'tests')!r}]))\n"
    assert "last one first" in run(["-c", COMMANDS + tested], copied, site)


def test_the_registries_of_pipeplan_have_the_documented_groups():
    groups: list[Registry[Any]] = [STRATEGIES, formats(), TRAINERS, MODELS, PRESETS]
    assert [table.group for table in groups] == [
        f"pipeplan.{kind}" for kind in ("strategies", "formats", "trainers", "models", "gpus")
    ]
