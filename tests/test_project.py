"""The files around the package: the citation, the workflows, what contributors are told."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from pipeplan.foundation.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CITATION_KEYS = {
    *(
        "abstract",
        "authors",
        "cff-version",
        "commit",
        "contact",
        "date-released",
        "doi",
        "identifiers",
        "keywords",
        "license",
    ),
    *(
        "license-url",
        "message",
        "preferred-citation",
        "references",
        "repository",
        "repository-artifact",
        "repository-code",
    ),
    *("title", "type", "url", "version"),
}
"""All that the schema of the Citation File Format 1.2.0 knows."""


def test_the_citation_has_what_its_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"authors", "cff-version", "message", "title"} <= set(citation) <= CITATION_KEYS
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in {"software", "dataset"}
    assert all({"name"} <= set(author) or {"family-names"} <= set(author) for author in citation["authors"])
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_actions_of_one_release_and_commands_that_are_here(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert [action for action in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+\.\d+\.\d+", action)] == []
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"].split() for step in steps if "run" in step]
    assert any(run == [".ci/run"] or (run[0] == "make" and run[1] in targets) for run in commands)
    for job in workflow["jobs"].values():
        assert job.get("needs") in {None, *workflow["jobs"]}


def test_contributors_are_told_of_commands_that_exist():
    commands = set(re.findall(r"`?make ([\w-]+)", (ROOT / "CONTRIBUTING.md").read_text()))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert commands <= targets
    assert {"test", "docs", "wheel"} <= commands


def test_ci_runs_the_tests_the_site_and_the_wheel():
    assert {"test-all", "docs-test", "wheel", "without", "peers"} <= targets_of_ci()
    assert " -k " not in recipe("wheel")[1], "the wheel is also tested with the lowest releases"


def targets_of_ci() -> set[str]:
    """Return the words of the lines of ``.ci/run`` that call make."""
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    return {word for line in lines if line.startswith("make ") for word in line.split()}


def recipe(target: str) -> tuple[list[str], str]:
    """What a target of the Makefile needs, and its commands."""
    needs, commands = re.findall(rf"^{target}:(.*)\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[-1]
    return needs.split(), commands


def test_the_site_is_built_and_tested_apart():
    """A test that fails does not fail the site, whose place is printed."""
    _, built = recipe("docs")
    assert "pytest" not in built
    assert built.rstrip().splitlines()[-1].startswith("\t@echo ")
    assert "build/site/index.html" in built
    needs, tested = recipe("docs-test")
    assert "docs" in needs
    assert "pytest" in tested
    assert "docs-test" in targets_of_ci()


@pytest.mark.parametrize("target", ["test-all", "docs-test"])
def test_accessibility_is_tested_where_it_can_be_and_skips_are_told(target):
    needs, commands = recipe(target)
    assert "axe" in needs
    assert " -rs" in commands
    assert "web_ui/node_modules" in recipe("axe")[1]


def test_nothing_installs_the_package_from_a_registry():
    """No registry has it: messages, help, pages and skills name a checkout, or a wheel."""
    places = ("README.md", "CONTRIBUTING.md", "docs", "skills", "examples", "src", "web_ui/src")
    files = [ROOT / place for place in places if (ROOT / place).is_file()]
    files += [
        path for place in places for path in (ROOT / place).rglob("*") if path.suffix in {".md", ".py", ".ts", ".ipynb"}
    ]
    from_registry = re.compile(r"pip install (?:-\S+ )*[\"']?pipeplan\b|\bpipeplan\[\w+\]")
    result = {str(path): from_registry.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {path: texts for path, texts in result.items() if texts} == {}


def test_a_missing_extra_names_an_installation_that_works():
    for extra in PROJECT["optional-dependencies"]:
        assert f"pip install '.[{extra}]' in a checkout" in str(MissingExtraError(extra, "it"))
