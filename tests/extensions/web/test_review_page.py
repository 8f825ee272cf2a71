"""The page of reviews and its API: a pasted script, findings at their lines, the patch, files, and errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import pipeplan
from tests.browser import serious_faults
from tests.extensions.web.test_page import Watched, watching

SCRIPT = """torchrun pretrain_gpt.py \\
  --num-layers 46 --tensor-model-parallel-size 1 \\
  --pipeline-model-parallel-size 4 --bf16
"""
DROP = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


ASKED = """async content => (await fetch("/api/review", {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "pasted", content }),
})).json()"""


@pytest.fixture
def watched(browser, address) -> Iterator[Watched]:
    yield from watching(browser, address, permissions=["clipboard-read", "clipboard-write"])


def visit(watched: Watched) -> None:
    watched.page.goto(f"{watched.address}/review")
    watched.page.wait_for_selector("#field-text")


def test_the_api_gives_what_python_gives(client, tmp_path):
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT)
    answer = client.post("/api/review", json={"name": "run.sh", "content": SCRIPT})
    assert answer.status_code == 200
    result = pipeplan.review(path)
    assert [finding["rule"] for finding in answer.json()["findings"]] == [finding.rule for finding in result.findings]
    assert answer.json()["findings"][0]["line"] == 3
    assert answer.json()["patch"].startswith("--- a/run.sh")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"content": "hello"}, ""),
        ({"content": SCRIPT, "settings": {"model": "/etc/passwd"}}, "model"),
        ({"content": SCRIPT, "settings": {"cluster": "h100-sxm:8x99999999"}}, "cluster"),
        ({"content": SCRIPT, "settings": {"trainer": "none"}}, "settings.trainer"),
        ({"content": "x" * ((1 << 20) + 1)}, "content"),
    ],
)
def test_what_cannot_be_reviewed_is_refused_at_its_field(client, request_, field):
    answer = client.post("/api/review", json=request_)
    assert answer.status_code == 422
    assert [error["field"].removeprefix("settings.") for error in answer.json()["errors"]] == [
        field.removeprefix("settings.")
    ]


def test_a_script_from_paste_to_patch(watched):
    visit(watched)
    page = watched.page
    page.fill("#field-text", SCRIPT)
    page.click(".source .primary")
    page.wait_for_selector(".finding.is-error")
    assert page.locator(".answer > *").first.inner_text() == page.evaluate(ASKED, SCRIPT)["headline"]
    assert page.text_content(".line.is-error .number") == "3"
    assert "46 layers do not divide by pp 4" in (page.text_content(".line.is-error + .finding") or "").lower()
    assert "--decoder-last-pipeline-num-layers 10" in (page.text_content(".diff .added") or "")
    page.click(".patch button")
    assert page.evaluate("navigator.clipboard.readText()").startswith("--- a/pasted")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious_faults(page) == []


def test_the_cluster_is_asked_for_where_rules_need_it(watched):
    visit(watched)
    page = watched.page
    page.click(".source .primary")
    page.wait_for_selector(".cluster-question:not([hidden])")
    assert "rules were not judged, because the text does not state it" in (page.text_content(".cluster-question") or "")
    assert "h100-sxm:8x8" in page.eval_on_selector_all("#known-clusters option", "all => all.map(one => one.value)")
    page.click("[data-asks=cluster] >> nth=0")
    assert page.evaluate("document.activeElement.id") == "cluster-of-review"
    page.keyboard.type("h100-sxm:8x16")
    page.keyboard.press("Enter")
    page.wait_for_selector(".cluster-question", state="hidden")
    assert page.input_value("#field-cluster") == "h100-sxm:8x16"
    assert page.locator("[data-asks=cluster]").count() == 0


def test_a_wrong_cluster_is_said_at_its_field(watched):
    visit(watched)
    page = watched.page
    page.click(".source .primary")
    page.fill("#cluster-of-review", "h100x64")
    page.click(".cluster-question button")
    page.wait_for_selector("[data-field=cluster] .error:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "field-cluster"


def test_a_file_is_reviewed_by_its_suffix_and_the_form_says_the_rest(watched):
    visit(watched)
    page = watched.page
    page.fill("#field-cluster", "h100-sxm:4x8")
    page.fill("#field-model", "llama3-70b")
    text = (
        "tensor_model_parallel_size: 8\npipeline_model_parallel_size: 4\nmicro_batch_size: 1\nglobal_batch_size: 64\n"
        "seq_length: 4096\nsequence_parallel: true\nnum_layers: 80\n"
        "pipeline_model_parallel_layout: Et*26|t*18|t*18|t*18L\n"
    )
    page.evaluate(DROP, ["run.yaml", text])
    page.wait_for_selector(".changes li")
    assert "another layout saves" in (page.text_content(".listing") or "")
    assert "heaviest rank" in " ".join(page.locator(".facts").all_text_contents())


def test_an_unreadable_text_is_said_on_top(watched):
    visit(watched)
    page = watched.page
    page.fill("#field-text", "hello")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".banner:not([hidden])")
    assert "has no setting of parallel training" in (page.text_content(".banner") or "")
