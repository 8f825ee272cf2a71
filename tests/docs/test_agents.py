"""What agents read: llms.txt lists the pages, and the skill names what exists."""

import re
from pathlib import Path

import yaml

import pipeplan
from docs.build import llms
from pipeplan.cli.app import command_line
from pipeplan.cli.commands import commands
from pipeplan.costs import SETTINGS
from pipeplan.extensions.web.mcp.tools import TOOLS

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / "skills" / "pipeplan" / "SKILL.md").read_text()


def test_the_list_of_pages_is_current():
    """``python -m docs.build.llms --write`` writes it."""
    assert (ROOT / "llms.txt").read_text() == llms.text(ROOT, site=False)


def test_the_list_leads_to_files_that_describe_themselves():
    entries = re.findall(r"^- \[(.+?)\]\((.+?)\)(?:: (.+))?$", (ROOT / "llms.txt").read_text(), re.MULTILINE)
    assert {path for _, path, _ in entries} >= {
        "docs/how-to/agents.md",
        "docs/how-to/planning.md",
        "docs/reference/options.md",
    }
    assert all((ROOT / path).is_file() for _, path, _ in entries)
    described = [text for _, _, text in entries if text]
    assert len(described) > 0.8 * len(entries)
    assert not [text for text in described if "```" in text or "](" in text]


def test_the_list_of_the_site_has_its_own_pages():
    listed = re.findall(r"\]\((.+?)\)", llms.text(ROOT, site=True))
    assert {"reference/commands/mcp.html", "reference/strategies/zbv.html", "how-to/agents.html"} <= set(listed)


def test_the_skill_names_commands_that_exist_and_all_tools():
    _, head, body = SKILL.split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["name"] == "pipeplan"
    assert len(about["description"]) <= 1024
    table = body[body.index("| question |") : body.index("Then ")]
    assert re.findall(r"\*\*`pipeplan ([a-z]+)`\*\*", table) == [*TOOLS]
    named = set(re.findall(r"`(?:pipeplan )?([a-z-]+)[ `]", body)) & {*commands()}
    assert named >= commands().keys() - {"serve", "mcp", "calibrate", "run"}
    assert set(re.findall(r"(?:`|\$ )pipeplan ([a-z-]+)", body)) <= {*commands()}


def test_the_skill_names_options_and_keys_that_exist():
    body = SKILL.split("---\n", 2)[2]
    app = command_line("all")
    options = {
        name
        for command in commands()
        for argument in app[command].assemble_argument_collection()
        for name in argument.parameter.name or ()
    }
    assert set(re.findall(r"--[a-z][a-z-]+", body)) <= options | {"--help-all"}
    keys = {*pipeplan.simulate().to_dict(), *pipeplan.simulate().bubble.to_dict(), *SETTINGS}
    assert {"gap", "needs", "warnings", "notes", "idle_over_total", "over_ideal", "memory_limit"} <= keys


def test_the_skill_is_short():
    assert len(SKILL.split("---\n", 2)[2].split()) <= 425
