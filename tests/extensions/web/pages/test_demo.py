"""The page to play with, opened from files as the site's build writes them, in a real browser."""

import re
import shlex
from pathlib import Path

import pytest

import pipeplan
from docs.build import demo
from pipeplan.cli import main
from tests.browser import close_page, new_page, serious_faults
from tests.extensions.web.pages.opened import PAINTED

SIZES = [(1440, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "SHAPES", ((4, 8), (4, 16), (8, 16)))
        demo.write(path)
    return path


@pytest.fixture
def opened(browser, folder):
    faults: list[str] = []
    pages = []

    def open_page(fragment: str = "", width: int = 1440, **context):
        page = new_page(browser, viewport={"width": width, "height": 900}, **context)
        pages.append(page)
        page.set_default_timeout(8_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
        page.goto((folder / "index.html").as_uri() + fragment)
        page.locator(".pp-chart").wait_for()
        return page

    yield open_page
    for page in pages:
        close_page(page)
    assert faults == []


def names(page) -> list[str]:
    result: list[str] = page.locator(".pr-table tbody th button").all_inner_texts()
    return result


def choose(page, *choices: str) -> None:
    """Click on choices, such as ``ranks-8``, and wait for what was computed."""
    for choice in choices:
        page.locator(f"label[for=pd-{choice}]").click()
        page.locator("#pipeplan-demo:not([aria-busy])").wait_for()
    page.evaluate(PAINTED)


def test_a_newcomer_finds_the_schedule_for_a_limit(opened):
    page = opened("#ranks=4&microbatches=8&costs=gpt-6.2b&transfer=given")
    settings = next(item for item in demo.presets() if item.key == "gpt-6.2b").settings
    of_limit = pipeplan.compare(ranks=4, microbatches=8, **settings)
    assert names(page) == [result.name for result in of_limit]
    assert re.match(r"A rank takes what it took in a run on 8 ranks", page.locator(".pd-origin").inner_text())

    page.get_by_role("spinbutton").fill("12")
    page.get_by_role("spinbutton").press("Enter")
    peaks = {result.name: max(result.to_dict()["peak_bytes"]) for result in of_limit}
    fitting = [name for name, peak in peaks.items() if peak <= 12 * 2**30]
    answer = page.get_by_role("status").filter(has_text="is the fastest that fits 12.0 GiB")
    assert answer.inner_text().startswith(fitting[0])

    # Other costs: what was chosen stays as far as it applies.
    choose(page, "microbatches-16")
    assert page.locator("h1").is_visible()
    assert page.get_by_role("spinbutton").input_value() == "12.0"
    choose(page, "ranks-8", "transfer-slow")
    assert page.get_by_role("radio", name="16", exact=True).is_checked()
    page.get_by_label("Costs of a rank").select_option("even")
    page.wait_for_function("location.hash == '#ranks=8&microbatches=16&costs=even&transfer=slow'")
    assert page.get_by_role("spinbutton").input_value() == ""

    # By key alone, and back to a link that somebody sent.
    page.get_by_role("radio", name="8", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    page.locator("#pipeplan-demo:not([aria-busy])").wait_for()
    assert page.get_by_role("radio", name="4", exact=True).is_checked()
    page.evaluate("location.hash = '#ranks=4&microbatches=8&costs=even&transfer=none&draw=gpipe&limit=8'")
    page.locator(".pp-chart[aria-label^='Timeline of gpipe.']").wait_for()
    assert page.get_by_role("spinbutton").input_value() == "8"


def test_the_command_computes_what_shows(opened, capsys, monkeypatch, tmp_path):
    page = opened("#ranks=4&microbatches=8&costs=even&transfer=slow&limit=3&sort=makespan")
    lines = page.locator(".pd-command code").inner_text().splitlines()
    assert lines[0] == "pip install .  # in a checkout of pipeplan"
    monkeypatch.chdir(tmp_path)
    words = shlex.split(lines[1])
    assert words[0] == "pipeplan"
    assert main(words[1:]) == 0
    assert (tmp_path / "comparison.html").is_file()
    first = names(page)[0]
    assert first in capsys.readouterr().out
    page.get_by_role("button", name="Copy").click()
    page.locator(".pd-status", has_text=re.compile("copied|selected")).wait_for()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_it_can_be_used_everywhere(opened, width, scheme):
    page = opened("#limit=12e9", width, color_scheme=scheme, has_touch=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_faults(page) == []
    if width < 500:
        page.locator("label[for=pd-transfer-none]").tap()
        page.locator("#pipeplan-demo:not([aria-busy])").wait_for()
        assert page.get_by_role("radio", name="none").is_checked()
