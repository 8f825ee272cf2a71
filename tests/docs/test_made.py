"""The pages that code makes say what the code has: no option, name, field or folder is left out."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from docs.build import (
    architecture,
    commands,
    glossary,
    navigation,
    python_pages,
    round_trips,
    schemas,
    strategies,
)
from docs.build.options_page import options_markdown
from pipeplan.cli import main
from pipeplan.costs import SETTINGS
from pipeplan.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]


def test_a_page_of_a_command_has_every_option_that_its_help_has(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    pages, seen = dict(commands.pages()), set[str]()
    for name in commands.names():
        main([name, "--help-all"])
        options = re.findall(r"^│ \*? *((?:--[a-z][\w-]+ )+)", capsys.readouterr().out, re.MULTILINE)
        told = {option for each in options for option in each.split()}
        seen |= told
        written = pages[f"{commands.FOLDER}{name}.md"]
        assert [option for option in told if f"`{option}" not in written] == [], name
    assert {"--ranks", "--output", "--global-batch", "--verify"} <= seen


def test_choices_and_values_stand_behind_their_option():
    page = dict(commands.pages())[f"{commands.FOLDER}simulate.md"]
    assert "`--communication edge|contended|streams|blocking`" in page
    assert "`--ranks N`, `-p`" in page
    assert "`--output FILE`, `-o`" in page
    assert "`--json`" in page
    assert "`[NAME]`" in page


def test_the_table_of_strategies_has_all_of_them_with_their_papers():
    rows = strategies.table().splitlines()[2:]
    assert len(rows) == len(STRATEGIES)
    zbv = next(row for row in rows if row.startswith("| [`zbv`](zbv.md)"))
    assert STRATEGIES["zbv"].memory.text in zbv
    assert "https://arxiv.org/abs/2401.10241" in zbv


def test_a_page_of_a_strategy_has_its_timing_table_and_no_section_of_a_docstring():
    for name in strategies.names():
        idea = strategies.idea(STRATEGIES[name])
        assert re.search(r"^    rank 0 ", idea, re.MULTILINE), name
        assert "----" not in idea, name
        assert "::\n" not in idea, name


def test_a_page_of_a_strategy_has_what_its_engine_makes_of_shapes():
    rows = strategies.timing("gpipe").splitlines()
    assert rows[2] == "| 4 | 8 | 33 | 27 | 27.3% | 8 |"
    assert len(rows) == 2 + len(strategies.SHAPES)


def test_every_public_name_is_in_the_reference():
    pages = "".join(text for _, text in python_pages.pages())
    missing = [
        name
        for name in pipeplan.__all__
        if not re.search(rf"^::: pipeplan\.(foundation\.errors\.)?{name}$", pages, re.MULTILINE)
    ]
    assert missing == []
    assert {"::: pipeplan.runtime.Pipeline\n", "::: pipeplan.extensions.search.layouts.best_layout\n"} <= set(
        pages.splitlines(keepends=True)
    )


def test_every_field_of_a_schema_is_told():
    ((_, page),) = schemas.pages(ROOT)
    result = json.loads((ROOT / "docs" / "schema" / "pipeplan-result.json").read_text())
    assert [field for field in result["$defs"]["Result"]["properties"] if f"| `{field}` |" not in page] == []
    assert "| `placement` | list of integer or list of integer | |" in page.replace("|  |", "| |")


def test_the_picture_of_the_architecture_has_every_folder_of_the_package():
    named = {name for layer in architecture.layers(ROOT) for name in layer}
    folders = {path.parent.name for path in (ROOT / "src" / "pipeplan").glob("*/__init__.py")}
    assert folders <= named
    assert all(f"| `{name}` | " in architecture.table(ROOT) for name in folders)
    assert all(f">{name}<" in picture.decode() for _, picture in architecture.pictures(ROOT) for name in folders)


def test_an_option_stands_in_one_row():
    page = options_markdown()
    rows = [line for line in page.splitlines() if line.startswith(("|`", "|<code>"))]
    assert len(rows) == len({*rows}) > 120
    for setting in SETTINGS.values():
        name = setting.name if setting.shell == "none" else setting.options[0]
        assert sum(row.startswith((f"|`{name}`", f"|`{name}`\\*")) for row in rows) == 1, name
    assert sum(row.startswith("|`--json`") for row in rows) == 1
    assert len(page.split()) < 2_820


def test_the_page_of_versions_says_what_the_package_requires():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "explanation" / "compatibility.md").read_text()
    assert f"`{about['optional-dependencies']['pytorch'][0]}`" in page
    assert f"supports Python {about['requires-python'].removeprefix('>=')}" in page


def test_folders_in_the_navigation_become_their_pages(tmp_path):
    folder = tmp_path / "docs" / "tutorials"
    folder.mkdir(parents=True)
    for name in ("index", "zebra", "my-costs", "first-schedule"):
        (folder / f"{name}.md").touch()
    entries: list[Any] = [{"Tutorials": "tutorials/"}, {"Reference": [{"Strategies": strategies.FOLDER}]}]
    navigation.fill(entries, tmp_path)
    names = ["index", "first-schedule", "my-costs", "zebra"]
    assert entries[0] == {"Tutorials": [f"tutorials/{name}.md" for name in names]}
    assert {"zbv": f"{strategies.FOLDER}zbv.md"} in entries[1]["Reference"][0]["Strategies"]


def test_pictures_of_windows_are_of_bounds_that_bind():
    shown = round_trips.shown_schedules()
    assert "3 round trips" in shown["v-min"].result.bound.reason
    assert shown["one-activation"].result.gap == pytest.approx(0, abs=1e-9)
    pictures = dict(round_trips.pages())
    assert len(pictures) == 4
    assert all(5_000 < len(picture) < 60_000 for picture in pictures.values())


@pytest.mark.slow
def test_every_term_of_the_glossary_has_its_figure():
    """In one theme: the same code draws the other, and the site has both."""
    page = (ROOT / "docs" / "explanation" / "glossary.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(glossary/([\w-]+)\.webp\)", page)
    assert len(shown) == len(re.findall(r"^## ", page, re.MULTILINE))
    assert sorted(shown) == sorted(glossary.names())
    figures = dict(glossary.pages(("light",)))
    wanted = {f"explanation/glossary/{name}-light.svg" for name in shown}
    assert set(figures) == wanted
    assert all(b"</svg>" in figure for figure in figures.values() if isinstance(figure, bytes))
