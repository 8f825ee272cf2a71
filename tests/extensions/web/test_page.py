"""The page in a real browser: sliders, comparison, files, links, explanations, keys, and whatever can be typed wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import pipeplan
from pipeplan.answers.comparing.columns import COLUMNS
from pipeplan.costs import SETTINGS
from tests.browser import close_page, new_page

LATER_MS = 600
"""Longer than the page waits before it writes its address."""

MOVE = """async ([field, value]) => {
  const slider = document.querySelector(`[data-field=${field}] input[type=range]`);
  const begun = performance.now();
  const shown = new Promise((done, failed) => {
    new MutationObserver((_, observer) => { observer.disconnect(); done(); })
      .observe(document.querySelector(".results"), { childList: true });
    setTimeout(() => failed(new Error("nothing new was shown")), 20000);
  });
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  await shown;
  await new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  return performance.now() - begun;
}"""
"""Move a slider, and tell how many milliseconds later everything is drawn."""


class Watched:
    """A page, and what went wrong on it."""

    def __init__(self, page, address: str) -> None:
        self.page = page
        self.address = address
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("request", self._watch)

    def _hear(self, message) -> None:
        if message.type in ("error", "warning") and "the server responded with a status of 4" not in message.text:
            self.errors.append(message.text)

    def _watch(self, request) -> None:
        if not request.url.startswith((self.address, "blob:", "data:")):
            self.elsewhere.append(request.url)

    def go(self, query: str = "", *, table: bool = True) -> None:
        """Open the page; ``table`` opens the table of all schedules."""
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_selector(".fastest li, .banner:not([hidden])", state="attached")
        if table and self.page.is_visible(".more button >> nth=0"):
            self.page.click(".more button >> nth=0")
            self.page.wait_for_selector(".results table")

    def rows(self) -> dict[str, list[str]]:
        """The cells of the comparison by schedule."""
        rows = self.page.eval_on_selector_all(
            ".results tbody tr:not(.group)", "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
        )
        return {row[1].partition(" over")[0]: row[2:] for row in rows}

    def makespan(self, name: str) -> float:
        """What the table says, in its own unit."""
        return float(self.rows()[name][0].replace(",", ""))

    def error_of(self, field: str) -> str:
        return self.page.text_content(f"[data-field={field}] .error") or ""

    def type(self, field: str, text: str) -> None:
        self.page.evaluate(f"document.querySelector('#field-{field}').closest('details')?.setAttribute('open', '')")
        self.page.fill(f"#field-{field}", text)

    def settled(self, condition: str) -> None:
        self.page.wait_for_function(condition)

    def addressed(self, name: str, value: str) -> None:
        """Wait until the page has written a parameter of its address."""
        condition = "([name, value]) => new URLSearchParams(location.search).get(name) === value"
        self.page.wait_for_function(condition, arg=[name, value])

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.page.url).query)


def watching(browser, address: str, kind=Watched, **options) -> Iterator[Any]:
    """Open a page whose errors, and requests to elsewhere, fail the test."""
    result = kind(new_page(browser, **{"viewport": {"width": 1440, "height": 1000}} | options), address)
    yield result
    close_page(result.page)
    assert result.errors == []
    assert result.elsewhere == []


@pytest.fixture
def watched(browser, address) -> Iterator[Watched]:
    yield from watching(browser, address, permissions=["clipboard-write"])


def test_it_begins_with_every_schedule_that_fits_the_best_first(watched):
    watched.go()
    rows = watched.rows()
    expected = pipeplan.compare(ranks=8, microbatches=24, p2p_time=0.1)
    assert list(rows) == [result.name for result in expected.results]
    assert len(rows) > 15
    watched.page.wait_for_timeout(LATER_MS)
    assert "schedules" not in watched.query  # a link shows the schedules of a later version, too
    best = pipeplan.simulate("zbv", ranks=8, microbatches=24, p2p_time=0.1)
    assert watched.makespan("zbv") == pytest.approx(best.makespan)
    assert watched.page.get_attribute(".pp-chart", "aria-label").startswith("Timeline of zbv")


BYTES = "?ranks=4&microbatches=12&forward_times=1234.5&activation_bytes=1GiB&memory_limit=9GiB&time_unit=ms"
CUT = """() => [...document.querySelectorAll("main *")].filter(element =>
  element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible"
).map(element => element.outerHTML.slice(0, 80))"""


def test_all_columns_have_the_names_of_the_shell_and_none_is_cut(watched):
    watched.go(BYTES)
    page = watched.page
    assert page.evaluate(CUT) == []
    page.click("button:text-is('All columns')")
    headings = page.locator(".results thead th").all_text_contents()
    shell = [column.title.replace("\n", " ") for name, column in COLUMNS.items() if name != "placement"]
    assert [heading.partition(",")[0] for heading in headings[2:]] == [
        {"peak": "peak memory"}.get(name, name) for name in shell
    ]
    assert page.evaluate(CUT) == []
    assert "over the memory limit" not in " ".join(page.locator(".results .note").all_text_contents())


def test_sliders_redraw_everything(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zb-h1")
    watched.page.evaluate(MOVE, ["ranks", "6"])
    assert watched.page.input_value("#field-ranks") == "6"
    makespan = pipeplan.simulate("1f1b", ranks=6, microbatches=8).makespan
    assert watched.makespan("1f1b") == pytest.approx(makespan)
    watched.page.evaluate(MOVE, ["forward_times", "2.5"])
    makespan = pipeplan.simulate("1f1b", ranks=6, microbatches=8, forward_times=2.5).makespan
    assert watched.makespan("1f1b") == pytest.approx(makespan)
    watched.addressed("forward_times", "2.5")


def test_choosing_schedules_and_which_to_see(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zb-h1")
    page = watched.page
    page.check(".boxes input[value=gpipe]")
    watched.settled("() => document.querySelectorAll('.results tbody tr').length === 3")
    page.click(".results button:text-is('gpipe')")
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of gpipe.')")
    page.check(".results input[aria-label='show the timeline of 1f1b']")
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of gpipe, 1f1b.')")
    page.uncheck(".results input[aria-label='show the timeline of gpipe']")
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of 1f1b.')")
    page.click("button:text-is('none')")
    watched.settled("() => !document.querySelector('.banner').hidden")
    assert "choose at least one schedule" in page.text_content(".schedules .error")


def test_a_link_reproduces_the_page(watched):
    query = "?ranks=6&microbatches=12&forward_times=1,2,1,1,1,1&pad_times=1&communication=contended&memory_limit=5act"
    watched.go(f"{query}&schedules=1f1b,v-half&show=v-half,1f1b&open=why#from=3&to=20&gaps=1")
    page = watched.page
    page.wait_for_selector(".explain-body table")
    page.click("text=Copy link")
    link = page.url
    rows = watched.rows()
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".explain-body table")
    assert watched.rows() == rows
    assert page.input_value("#field-forward_times") == "1,2,1,1,1,1"
    assert page.input_value("#field-communication") == "contended"
    assert page.is_checked("#field-pad_times")
    assert "from=3&to=20" in urlsplit(page.url).fragment
    assert page.get_attribute("button:text-is('Idle reasons')", "aria-pressed") == "true"
    assert page.get_attribute(".pp-chart", "aria-label").startswith("Timeline of v-half, 1f1b.")
    watched.page.wait_for_timeout(LATER_MS)
    assert page.url == link


def test_a_schedule_file_joins_the_comparison(watched, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(pipeplan.export("zb-h1", "torch-csv", ranks=4, microbatches=8).text)
    watched.go("?schedules=1f1b")
    watched.page.set_input_files("#field-file", path)
    watched.settled("() => document.querySelectorAll('.results tbody tr').length === 2")
    # The form takes the shape of the file, and its timeline is drawn.
    assert [watched.page.input_value(f"#field-{name}") for name in ("ranks", "microbatches")] == ["4", "8"]
    assert "4 ranks, 8 microbatches" in watched.page.text_content(".drop .hint")
    assert watched.page.locator(".results tr.refused").count() == 0
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of mine.csv.')")
    assert watched.makespan("mine.csv") == pipeplan.simulate("zb-h1", ranks=4, microbatches=8).makespan
    watched.page.click("button[aria-label='remove mine.csv']")
    watched.settled("() => document.querySelectorAll('.results tbody tr').length === 1")


def test_a_file_that_cannot_be_taken_is_told_there(watched, tmp_path):
    watched.go("?schedules=1f1b")
    before = watched.rows()
    for name, content, says in (
        ("big.yaml", b" " * 50_000_000, "the limit is 8 MiB"),
        ("a.yaml", b"rank: 3", "did you mean 'ranks'"),
        ("a.json", b'{"ranks": ', "invalid config file"),
        ("a.png", b"\x89PNG", "unknown suffix"),
    ):
        (tmp_path / name).write_bytes(content)
        watched.page.set_input_files("#field-file", tmp_path / name)
        watched.settled(f"() => document.querySelector('#file-error').textContent.includes({json.dumps(says)})")
        assert watched.rows() == before


TEXT_FIELDS = [
    name
    for name, about in SETTINGS.items()
    if about.in_form and about.kind not in ("choice", "flag") and name not in ("stages", "time_unit")
]


TYPE = """values => { for (const [field, value] of Object.entries(values)) {
  const input = document.querySelector(`#field-${field}`);
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
} }"""
"""What somebody types into several fields, faster than the page asks the server."""


def test_what_is_typed_wrong_is_told_at_its_field(watched):
    """Several at a time, but a text by itself: it is read once all else is right."""
    watched.go("?ranks=4&microbatches=8&schedules=interleaved-1f1b")
    right = {"ranks": "4", "microbatches": "8"}
    shown = "[...document.querySelectorAll('.error:not([hidden])')].map(error => error.id).sort().join()"
    wrong = dict(zip(TEXT_FIELDS, cycle(("NaN", "-1", "1e400", "zwölf"))))
    texts = [name for name in TEXT_FIELDS if SETTINGS[name].kind == "text"]
    others = [name for name in TEXT_FIELDS if name not in texts]
    before: list[str] = []
    for fields in [others[at : at + 8] for at in range(0, len(others), 8)] + [[name] for name in texts]:
        values = {field: right.get(field, "") for field in before} | {field: wrong[field] for field in fields}
        watched.page.evaluate(TYPE, values)
        watched.settled(f"() => {shown} === '{','.join(sorted(f'field-{field}-error' for field in fields))}'")
        assert all(watched.error_of(field) for field in fields)
        assert "interleaved-1f1b" in watched.rows()
        before = fields
    watched.type(before[0], "")
    watched.settled(f"() => {shown} === ''")


def test_a_page_that_begins_wrong_is_not_blank(watched):
    watched.go("?ranks=-3&forward_times=x&schedules=nonsense,1f1b")
    assert watched.error_of("ranks") == "Ranks must be at least 1, not -3"
    assert "Ranks" in watched.page.text_content(".banner")
    watched.type("ranks", "4")
    watched.type("forward_times", "1")
    watched.settled("() => document.querySelector('.banner').hidden")
    watched.settled("() => document.querySelector('.fastest').textContent.includes('1f1b')")


def test_a_default_that_depends_on_others_is_no_choice(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b&unshard_times=1")
    page = watched.page
    assert page.input_value("#field-sharding") == ""
    shown = "() => document.querySelector('.results .number').textContent === '{:g}'"
    for sharding in ("none", "pytorch"):
        page.select_option("#field-sharding", sharding)
        expected = pipeplan.simulate("1f1b", ranks=4, microbatches=8, unshard_times=1, sharding=sharding).makespan
        watched.settled(shown.format(expected))


def test_values_per_stage_in_a_table(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b")
    page = watched.page
    page.click("[data-field=forward_times] button")
    cells = page.locator("[data-field=forward_times] .stages input")
    assert cells.count() == 4
    cells.nth(0).fill("1")
    cells.nth(2).fill("3")
    assert page.input_value("#field-forward_times") == "1, 1, 3, 1"
    expected = pipeplan.simulate("1f1b", ranks=4, microbatches=8, forward_times=(1, 1, 3, 1)).makespan
    watched.settled(f"() => document.querySelector('.results .number').textContent === '{expected:g}'")
    watched.type("ranks", "5")
    assert cells.count() == 5
    error = "document.querySelector('#field-forward_times-error').textContent"
    watched.settled(f"() => {error}.includes('4 values for 5 stages')")


def test_explaining(watched):
    watched.go("?ranks=4&microbatches=8&p2p_time=0.5&schedules=1f1b")
    page = watched.page
    page.click(".panel-bar button:text-is('Why idle')")
    page.wait_for_selector(".explain-body table")
    assert (page.text_content(".explain h2") or "").startswith("1f1b takes ")
    text = page.text_content(".explain-body")
    for words in ("waiting for messages", "critical path", "transfers free", "1 more microbatch"):
        assert words in text
    page.evaluate(MOVE, ["p2p_time", "0"])
    watched.settled("() => !document.querySelector('.explain-body').textContent.includes('transfers free')")


def test_the_settings_as_a_config_for_the_command_line(watched, tmp_path):
    watched.go("?ranks=3&microbatches=6&forward_times=1,2,3&schedules=1f1b&memory_limit=8act")
    watched.page.click("summary:text('Download')")
    with watched.page.expect_download() as result:
        watched.page.click("text=These settings, JSON")
    path = tmp_path / "pipeplan.json"
    result.value.save_as(path)
    expected = {"ranks": 3, "microbatches": 6, "forward_times": [1, 2, 3], "memory_limit": "8act", "schedule": "1f1b"}
    assert json.loads(path.read_text()) == expected
    from pipeplan.costs.config import load_config

    assert load_config(path).settings["forward_times"] == (1, 2, 3)


def test_by_keyboard_alone(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zb-h1", table=False)
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the comparison"
    page.focus("[data-field=ranks] input[type=range]")
    page.keyboard.press("ArrowRight")
    watched.settled("() => document.querySelector('#field-ranks').value === '5'")
    page.focus(".fastest [data-key='row 1f1b']")
    page.keyboard.press("Enter")
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of 1f1b.')")
    assert page.evaluate("document.activeElement.dataset.key") == "row 1f1b"
    page.focus(".menu summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Picture, PNG"
    page.keyboard.press("Escape")
    assert page.evaluate("document.querySelector('.menu').open") is False
    assert page.evaluate("document.activeElement.textContent") == "Download"


def test_what_takes_long_is_said_and_given_up_for_what_is_asked_next(watched):
    watched.go("?ranks=4&schedules=1f1b")

    def hold(_):
        """Leave the request without an answer."""

    watched.page.route("**/api/compare", hold)
    watched.type("ranks", "5")
    watched.page.wait_for_selector(".answer[aria-busy]")
    watched.page.unroute("**/api/compare")
    watched.type("ranks", "6")
    watched.settled("() => document.querySelector('.results .number').textContent.startsWith('39')")
    watched.page.wait_for_selector(".answer:not([aria-busy])")
    assert watched.page.is_hidden(".banner")
