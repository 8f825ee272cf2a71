"""Texts that would be code elsewhere, in a real browser: nothing of them runs, and no element comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from tests.browser import close_page, new_page

RAN = "q7x9z"
PAYLOADS = [
    f"<img src=x onerror={RAN}(1)>",
    f"'\"><svg onload={RAN}(2)>",
    f"</script><script>{RAN}(3)</script>",
    f"<details open ontoggle={RAN}(4)>&lt;b&gt;\u202e${{{RAN}(5)}}",
]
TEXT = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"

DROP = """([names, text]) => {
  const files = new DataTransfer();
  for (const name of names) files.items.add(new File([text], name));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
}"""
CAME = f"""() => [...document.querySelectorAll("*")].filter(
  element => element.tagName === "IMG" && element.getAttribute("src") === "x"
    || element.hasAttribute("onerror") || element.hasAttribute("onload") || element.hasAttribute("ontoggle")
    || element.tagName === "SCRIPT" && element.textContent.startsWith("{RAN}")).map(element => element.outerHTML)"""
"""The elements that came of a payload."""


class Hooked:
    """A page that knows what ran on it."""

    def __init__(self, browser) -> None:
        self.page = new_page(browser)
        self.ran: list[str] = []
        self.page.expose_function(RAN, lambda *arguments: self.ran.append(str(arguments)))
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog) -> None:
        self.ran.append(dialog.message)
        dialog.dismiss()

    def require_nothing(self) -> None:
        """Nothing ran, and nothing came of a text."""
        assert self.page.evaluate(CAME) == []
        assert self.ran == []


@pytest.fixture
def hooked(browser) -> Iterator[Hooked]:
    result = Hooked(browser)
    yield result
    close_page(result.page)


def test_the_hook_tells_what_runs(hooked):
    """Without a policy, and where text is markup, all of this would be seen."""
    hooked.page.set_content(f"<p>{PAYLOADS[0]}")
    hooked.page.wait_for_function(f"() => ({CAME})().length > 0")
    for _ in range(100):
        hooked.page.wait_for_timeout(0 if hooked.ran else 100)
    assert hooked.ran


def test_names_of_files_are_shown_and_nothing_more(hooked, address):
    page = hooked.page
    names = [f"{payload}.csv" for payload in PAYLOADS]
    page.goto(f"{address}/?ranks=2&microbatches=2&schedules=1f1b")
    page.wait_for_selector(".fastest li")
    page.evaluate(DROP, [names, TEXT])
    page.wait_for_function("() => document.querySelectorAll('.fastest li').length === 5")
    shown = page.text_content(".fastest")
    assert all(payload.partition("\u202e")[0] in shown for payload in PAYLOADS)
    hooked.require_nothing()
    for panel in ("Why idle", "Edit"):
        page.click(f".panel-bar button:text-is('{panel}')")
        page.wait_for_timeout(200)
        hooked.require_nothing()


def test_an_address_is_shown_and_nothing_more(hooked, address):
    page = hooked.page
    for payload in PAYLOADS:
        text = quote(payload)
        page.goto(
            f"{address}/?ranks={text}&schedules={text},1f1b&show={text}&open={text}&{text}={text}&memory_limit={text}"
        )
        page.wait_for_selector(".fastest li, .banner:not([hidden])")
        hooked.require_nothing()
        page.goto(f"{address}/plan?model={text}&cluster={text}&{text}=1")
        page.wait_for_selector("form, .controls")
        hooked.require_nothing()


def test_a_reviewed_text_is_shown_and_nothing_more(hooked, address):
    page = hooked.page
    page.goto(f"{address}/review")
    page.wait_for_selector("#field-text")
    lines = "\n".join(f"{payload} --pipeline-model-parallel-size 4" for payload in PAYLOADS)
    page.fill("#field-text", f"torchrun {lines} --num-layers 46 --tensor-model-parallel-size 1 --bf16\n")
    page.click(".source .primary")
    page.wait_for_selector(".listing .line, .banner:not([hidden])")
    hooked.require_nothing()
    page.evaluate(DROP, [[f"{PAYLOADS[0]}.sh"], "--num-layers 46\n--pipeline-model-parallel-size 4\n"])
    page.wait_for_function("() => document.querySelector('.source [role=status]').textContent.endsWith('.sh')")
    hooked.require_nothing()


def test_pages_to_take_away_show_names_and_nothing_more(hooked, client, tmp_path):
    question: dict[str, Any] = {"settings": {"ranks": 2, "microbatches": 2}, "format": "html"}
    for number, chosen in enumerate((PAYLOADS[:1], PAYLOADS)):
        files = [{"name": f"{payload}.csv", "text": TEXT} for payload in chosen]
        answer = client.post("/api/download", json=question | {"files": files})
        assert answer.status_code == 200, answer.text
        path = tmp_path / f"{number}.html"
        path.write_bytes(answer.content)
        hooked.page.goto(path.as_uri())
        hooked.page.wait_for_selector("svg, canvas")
        hooked.require_nothing()
