"""``import pipeplan``: every public name is there, takes what its command takes, reads well, and costs nothing unused."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from operator import attrgetter

import pytest

import pipeplan
import pipeplan.answers
from docs.build.options import FUNCTIONS as FUNCTIONS_WITH_OPTIONS
from docs.build.python_pages import PUBLIC
from pipeplan.cli.app import command_line
from pipeplan.costs import ConfiguredSettings, table_of
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.search.answers.options import ParetoOptions, SearchOptions
from pipeplan.extensions.training.options import ProfileOptions, RunOptions
from pipeplan.foundation.errors import InputError

ALL_SETTINGS = {*table_of(ConfiguredSettings), "calibrate", "model", "cluster"}
FUNCTIONS = [name for name in pipeplan.__all__ if inspect.isfunction(getattr(pipeplan, name))]


def test_every_public_name_is_there():
    for name in pipeplan.__all__:
        assert getattr(pipeplan, name).__doc__, name
    assert set(pipeplan.__all__) <= set(dir(pipeplan))
    assert pipeplan.__version__


def test_every_submodule_is_there_with_its_public_names():
    modules = {module.partition(".")[0] for module in PUBLIC}
    assert modules | {"runtime"} <= set(dir(pipeplan)) - set(pipeplan.__all__)
    for module, (_, public) in PUBLIC.items():
        front = importlib.import_module(f"pipeplan.{module}")
        assert front is attrgetter(module)(pipeplan)
        for name in public.split():
            assert getattr(front, name).__doc__, f"{module}.{name}"
            assert name in getattr(front, "__all__", [name]), f"{module}.{name}"


def test_every_command_has_its_function():
    commands = "simulate compare explain search pareto plan estimate check export profile run diff schedules"
    assert sorted(FUNCTIONS) == sorted(
        [
            *commands.split(),
            "models",
            "gpus",
            "machines",
            "save",
            "sweep",
            "register",
            "read_schedule",
            "read_timeline",
            "review",
            "review_rules",
        ]
    )


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = pipeplan.simulat  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="simulat"):
        exec("from pipeplan import simulat")


def test_no_function_shadows_a_module():
    """Importing ``package.x`` sets ``package.x`` to the module, whatever it was before."""
    found = [module.name for module in pkgutil.walk_packages(pipeplan.__path__, "pipeplan.", onerror=lambda _: None)]
    for package, _, name in (each.rpartition(".") for each in found):
        if name in FUNCTIONS:
            importlib.import_module(f"{package}.{name}")
            assert inspect.ismodule(getattr(importlib.import_module(package), name)), f"{package}.{name}"
            assert package != "pipeplan"


def test_help_names_every_parameter():
    for name in FUNCTIONS:
        function = getattr(pipeplan, name)
        text = inspect.getdoc(function)
        assert text, name
        assert "Raises\n------" in text, name
        for parameter in inspect.signature(function).parameters.values():
            assert parameter.name in text, parameter.name
            assert parameter.annotation is not inspect.Parameter.empty, name
        for record in FUNCTIONS_WITH_OPTIONS.get(function, ()):
            assert all(f"\n{option}\n" in text for option in table_of(record) if option not in ALL_SETTINGS), name
        # A line of help() in a terminal of 125 columns, indented by 4.
        assert max(map(len, text.splitlines())) <= 121, name


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("search", SearchOptions),
        ("pareto", ParetoOptions),
        ("plan", PlanOptions),
        ("run", RunOptions),
        ("profile", ProfileOptions),
    ],
)
def test_functions_and_commands_take_the_options_of_their_record(name, record):
    assert record in FUNCTIONS_WITH_OPTIONS[getattr(pipeplan, name)]
    command = command_line()[name.replace("_", "-")].assemble_argument_collection()
    offered = {each for argument in command for each in argument.names}
    in_shell = [setting for setting in table_of(record).values() if setting.shell != "none"]
    assert {option for setting in in_shell for option in setting.options} <= offered


def test_a_plan_needs_what_nobody_can_choose():
    with pytest.raises(InputError, match="missing: global_batch, sequence"):
        pipeplan.plan("llama3-8b", "h100-sxm:8x1")  # type: ignore[call-arg]


def with_examples():
    """The modules of the library's front whose docstrings hold examples to run."""
    names = [each.name for each in pkgutil.walk_packages(pipeplan.answers.__path__, "pipeplan.answers.")]
    lines = {name: inspect.getsource(importlib.import_module(name)).splitlines() for name in names}
    return [name for name in names if any(">>>" in line and "+SKIP" not in line for line in lines[name])]


def test_examples_in_docstrings():
    for module in with_examples():
        found = doctest.testmod(importlib.import_module(module), extraglobs={"pipeplan": pipeplan})
        assert found.attempted, module
        assert found.failed == 0, module


def test_importing_pipeplan_imports_nothing_heavy():
    heavy = "matplotlib numba cyclopts rich yaml pandas importlib.metadata pipeplan.extensions.search"
    code = (
        f"heavy = '{heavy}';"
        "import sys, pipeplan; from pipeplan.cli import main; main(['--version']);"
        "light = set(sys.modules); pipeplan.simulate('zb-auto');"
        "print([m for m in ('numpy', 'msgspec') if m in light], [m for m in heavy.split() if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == f"{pipeplan.__version__}\n[] []\n"
