"""What agents read: llms.txt lists the pages, and the skill's answers are what pipeplan prints."""

import re
from pathlib import Path

import yaml

from docs.build import executed, llms
from pipeplan.cli.commands import commands

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


def test_the_skill_names_every_command_and_no_other():
    _, head, body = SKILL.split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["name"] == "pipeplan"
    assert len(about["description"]) <= 1024
    table = body[body.index("| question |") : body.index("## Rules")]
    named = set(re.findall(r"`(?:pipeplan )?([a-z-]+)[ `]", table)) & {*commands()}
    assert named == commands().keys() - {"serve", "mcp", "calibrate", "run"}
    assert set(re.findall(r"(?:`|\$ )pipeplan ([a-z-]+)", body)) <= {*commands()}


def test_the_worked_questions_of_the_skill_are_answered_so(tmp_path):
    """All but the plan, which takes longer and is among the pages that are run."""
    questions = re.split(r"^### ", SKILL, flags=re.MULTILINE)[1:]
    assert len(questions) == 5
    assert all("```console" in question for question in questions)
    run = executed.Run(tmp_path)
    run.page("### ".join(question for question in questions if "pipeplan plan" not in question))
    assert not run.faults
