"""The judges of the web app's suites find what is planted."""

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from pipeplan.web.guard import SECURITY_HEADERS
from tests.torture.suite import Found
from tests.torture.web.judging import judged
from tests.torture.web.markup import TOKEN, looked_into
from tests.torture.web.wire import Answer

HEADERS = (*SECURITY_HEADERS.items(), ("content-type", "application/json"))
REASON = b'{"errors":[{"field":"ranks","message":"too many"}]}'


def test_a_refusal_with_its_reason_is_right():
    assert judged(Answer(422, HEADERS, REASON), "x") == "refused"
    assert judged(Answer(200, HEADERS, b"{}"), "x") == "answered"


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (None, "no answer"),
        (Answer(200, HEADERS, b"{", whole=False), "cut off"),
        (Answer(500, HEADERS, REASON), "status 500"),
        (Answer(200, HEADERS[1:], b"{}"), "without the header content-security-policy"),
        (Answer(422, HEADERS, b"{}"), "without a reason"),
        (Answer(422, HEADERS[:-1], REASON), "status 422 as ''"),
        (Answer(200, HEADERS, b'{"a": NaN}'), "NaN is no JSON"),
        (Answer(422, HEADERS, REASON.replace(b"too", b"in solver.py")), "tells b'r.py'"),
        (Answer(422, HEADERS, REASON.replace(b"too", b"/tmp/x")), "tells b'/tmp/'"),
        (Answer(307, (*HEADERS, ("location", "http://evil.example/")), b""), "sent on to"),
    ],
)
def test_what_no_answer_may_be_is_found(answer, wrong):
    with pytest.raises(Found, match=wrong):
        judged(answer, "x")


@pytest.mark.parametrize(
    ("chosen", "hostile", "harmless"),
    [
        ("html", f"<p><img src=x onerror={TOKEN}>", f"<p>{TOKEN}"),
        ("html", f"<script>var a = '{TOKEN}'</script>", f"<script>{TOKEN}</script>"),
        ("html", f"<a href='{TOKEN}'>", "<a href='x'>"),
        ("svg", f"<svg><b>{TOKEN}</b></svg>", f"<svg>{TOKEN}</svg>"),
        ("svg", f"<svg>{TOKEN}\0</svg>", f"<svg>{TOKEN}</svg>"),
        ("svg", f"<svg {TOKEN}='1'/>", "<svg/>"),
        ("timeline-csv", f"a,={TOKEN}()\n", f"a,{TOKEN}\n"),
        ("timeline-csv", f"a,b\n{TOKEN},c,d\n", f"a,b\n{TOKEN},c\n"),
        ("torchtitan", f"run x\n{TOKEN} --now\n", f"run x{TOKEN}--now\n"),
        ("torchtitan-python", f"# x\n{TOKEN}()\n", f"# x {TOKEN}\n"),
        ("json", f'{{"name": "x", "{TOKEN}": 1}}', f'{{"name": "{TOKEN}"}}'),
        ("text", f"a \x1b[31m{TOKEN}", f"a {TOKEN}"),
    ],
)
def test_what_comes_of_a_text_is_found(chosen, hostile, harmless):
    looked_into(chosen, harmless.encode(), harmless.encode())
    with pytest.raises((Found, ValueError)):
        looked_into(chosen, hostile.encode(), harmless.encode())
