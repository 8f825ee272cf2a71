"""The suite ``markup``: texts that would be code elsewhere, through every endpoint, page and file that shows them.

What is made for a harmless text of the same length says what may be there: a hostile text may add no element, no attribute,
no row, no word of a command. HTML and XML are read by parsers, shell scripts and Python as their languages have them.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from tests.torture.suite import Found, Suite
from tests.torture.web.suite import needs

TOKEN = "q7x9z"
"""Stands in every payload, so that it is found wherever it went."""

PAYLOADS = (
    f"<script>{TOKEN}(1)</script>",
    f"</script><script>{TOKEN}(1)</script>",
    f'"><img src=x onerror={TOKEN}(1)>',
    f"'><svg onload={TOKEN}(1)>",
    f"--><b {TOKEN}=1>",
    f"]]><{TOKEN}/>",
    f"<!--<script>{TOKEN}",
    f"&#60;{TOKEN}&#62;&lt;b&gt;&amp;",
    f"&{TOKEN};<!ENTITY {TOKEN} 'x'>",
    f"<?{TOKEN} x?>",
    f"javascript:{TOKEN}(1)",
    f"url(javascript:{TOKEN})",
    f"}}</style><style>*{{x:{TOKEN}}}",
    f"${{{TOKEN}}}`{TOKEN}`$({TOKEN})",
    f"'; {TOKEN}; '",
    f'"; {TOKEN}; "',
    f"x\n{TOKEN} --now\n# ",
    f"x\r\n{TOKEN}: y\r\n\r\n<b>",
    f"x\\\n{TOKEN}",
    f"=cmd|'/c {TOKEN}'!A1",
    f"@{TOKEN}(1)",
    f"-1+{TOKEN}",
    f"a,b;\t{TOKEN}\"\"\"'''",
    f"{TOKEN}\u202e\u2066gpj.exe",
    f"{TOKEN}\x1b[31m\x1b]0;x\x07",
    f"{TOKEN}\x00\x01\x08\x0b\x7f\x9f",
    f"{TOKEN}\u2028\u2029\u0085",
    f"{TOKEN}\ufffe\uffff\U0001f4a9",
    f"{{{{{TOKEN}}}}}{{% {TOKEN} %}}",
    f"$\\alpha_{{{TOKEN}}}$ $$ \\",
    f"%s %({TOKEN})s {{0.{TOKEN}}}",
)

_CSV = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
_SETTINGS = {"ranks": 2, "microbatches": 2}


def attempt(seed: int, folder: Path) -> str:
    """Send one text to one place, and look for it in what comes back."""
    rng = Random(seed)
    text = PAYLOADS[seed % len(PAYLOADS)]
    place = rng.choice(list(_PLACES))
    try:
        return _PLACES[place](text, rng)
    except Found as found:
        raise Found(f"{place}, {text!r}: {found}") from None


def _target() -> Any:
    from tests.torture.web.suite import target_of

    return target_of(os.getpid())


def _post(path: str, document: Any) -> Any:
    from tests.torture.web.judging import judged
    from tests.torture.web.wire import exchange, request

    body = json.dumps(document).encode() if not isinstance(document, bytes) else document
    sent = request("POST", path, body)
    answer = exchange(_target().port, sent)
    judged(answer, path, echoed=sent)
    return answer


def _harmless(text: str) -> str:
    """A text as long, of letters and digits alone."""
    return (TOKEN + "x" * len(text))[: max(len(text), len(TOKEN))]


@cache
def _formats() -> tuple[str, ...]:
    from pipeplan.api import all_formats

    return tuple(each.name for each in all_formats().values() if each.writers)


def _file_named(name: str, text: str = _CSV) -> dict[str, str]:
    return {"name": f"{name[:70]}.csv", "text": text}


def _downloaded(text: str, rng: Random) -> str:
    """A file of one's own with the text as its name, in one of the formats."""
    chosen = rng.choice(_formats())
    both = []
    for name in (text, _harmless(text)):
        document: dict[str, Any] = {"settings": _SETTINGS, "files": [_file_named(name)], "format": chosen}
        both.append(_post("/api/download", document))
    hostile, harmless = both
    if hostile.status != harmless.status:
        raise Found(f"{chosen}: status {hostile.status}, and {harmless.status} for a harmless name")
    if hostile.status != 200:
        return "refused"
    _require_plain_headers(hostile)
    looked_into(chosen, hostile.body, harmless.body)
    return chosen


def _compared_download(text: str, rng: Random) -> str:
    """The same beside a schedule of pipeplan's, where a format holds several."""
    chosen = rng.choice(("html", "svg", "text", "json"))
    hostile, harmless = (
        _post(
            "/api/download",
            {"settings": _SETTINGS, "schedules": ["1f1b"], "files": [_file_named(name)], "format": chosen},
        )
        for name in (text, _harmless(text))
    )
    if hostile.status != 200 or harmless.status != 200:
        raise Found(f"{chosen}: status {hostile.status} and {harmless.status}")
    looked_into(chosen, hostile.body, harmless.body)
    return f"{chosen} of two"


def _configured(text: str, rng: Random) -> str:
    """A config file with the text as its name, its schedule, a key, a value."""
    from tests.torture.web.judging import judged
    from tests.torture.web.wire import exchange, request

    documents = (
        {"schedule": text},
        {text: 1},
        {"ranks": text},
        {"memory_limit": text},
        {"ranks": 2, "costs_name": text},
    )
    name = quote(f"{text[:60]}.json" if rng.random() < 0.5 else "a.json", safe="")
    sent = request("POST", f"/api/config?name={name}", json.dumps(rng.choice(documents)).encode())
    answer = exchange(_target().port, sent)
    return judged(answer, "/api/config", echoed=sent)


def _refused(text: str, rng: Random) -> str:
    """A name that nobody knows."""
    field = rng.choice(("schedules", "draw"))
    return "refused" if _post("/api/compare", {"settings": _SETTINGS, field: [text[:80]]}).status >= 400 else "answered"


def _edited(text: str, rng: Random) -> str:
    """An edit with the text as its name, or in its rows."""
    in_rows = rng.random() < 0.5
    document = {"rows": f"0F0 0B0 {text}" if in_rows else "0F0 0B0", "name": text[:80]}
    return "answered" if _post("/api/edit", document).status == 200 else "refused"


def _explained(text: str, rng: Random) -> str:
    """A file of one's own that is explained."""
    return (
        "answered"
        if _post("/api/explain", {"settings": _SETTINGS, "files": [_file_named(text)]}).status == 200
        else "refused"
    )


def _planned(text: str, rng: Random) -> str:
    """A plan's model, cluster, or the name of a model's file."""
    settings = {"model": "llama3-8b", "cluster": "h100-sxm:8x2", "global_batch": 64, "sequence": 4096, "seconds": 0.1}
    kind = rng.choice(("model", "cluster", "file", "document"))
    if kind == "document":
        return str(_post("/api/plan/chosen", {"document": {"model": text, "cluster": text, text: text}}).status)
    if kind == "file":
        document = {
            "settings": settings | {"model": None},
            "model_file": {"name": text[:80], "text": json.dumps({text: text})},
        }
        return str(_post("/api/plan", document).status)
    return str(_post("/api/plan", {"settings": settings | {kind: text}}).status)


def _visited(text: str, rng: Random) -> str:
    """A page whose address holds the text: the page is as it always is."""
    from tests.torture.web.judging import judged
    from tests.torture.web.wire import exchange, request

    path = rng.choice(("/", "/plan", "/api", "/nowhere/", "/assets/", "/api/presets/"))
    quoted = quote(text.encode("utf-8", "replace"), safe="")
    sent = request(
        "GET", f"{path}{quoted}" if path.endswith("s/") or path.endswith("e/") else f"{path}?a={quoted}&{quoted}=1"
    )
    answer = exchange(_target().port, sent)
    word = judged(answer, path, echoed=sent)
    assert answer is not None
    if answer.header("content-type").startswith("text/html") and TOKEN.encode() in answer.body:
        raise Found(f"{path} holds what stood in its address")
    return word


_PLACES: dict[str, Callable[[str, Random], str]] = {
    "a file's name in a download": _downloaded,
    "a file's name in a comparison": _compared_download,
    "a config file": _configured,
    "an unknown name": _refused,
    "an edit": _edited,
    "an explanation": _explained,
    "a plan": _planned,
    "an address": _visited,
}


def _require_plain_headers(answer: Any) -> None:
    said = answer.header("content-disposition")
    if not re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+"', said):
        raise Found(f"the file is named {said!r}")


def looked_into(chosen: str, hostile: bytes, harmless: bytes) -> None:
    """Compare a file with the one for a harmless text. Raises Found for what came of the text."""
    from pipeplan.api import all_formats

    media = all_formats()[chosen].media.partition(";")[0]
    look = _LOOKS.get(media, _as_lines)
    if media in ("application/pdf", "image/png"):
        return
    look(hostile, harmless)


class _Elements(HTMLParser):
    """What a page consists of: its elements with the names of their attributes, and what its scripts hold."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, ...]] = []
        self.scripts: list[str] = []
        self.values: list[tuple[str, str, str]] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *sorted(name for name, _ in attrs)))
        self.values += [(tag, name, value or "") for name, value in attrs]
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment",))

    def unknown_decl(self, data: str) -> None:
        self.found.append(("declaration",))

    def handle_pi(self, data: str) -> None:
        self.found.append(("instruction",))


_TEXTUAL = {"title", "alt", "content", "aria-label", "id", "data-name", "value"}
"""Attributes that are read to people."""


def _as_html(hostile: bytes, harmless: bytes) -> None:
    page, plain = _Elements(hostile.decode()), _Elements(harmless.decode())
    if page.found != plain.found:
        extra = [each for each in page.found if each not in plain.found]
        raise Found(f"the page has other elements than for a harmless name: {extra[:3] or len(page.found)}")
    if len(page.scripts) != len(plain.scripts):
        raise Found("the page has other scripts than for a harmless name")
    for script, known in zip(page.scripts, plain.scripts, strict=True):
        if script != known:
            json.loads(script)  # data, and nothing else, may differ
    for tag, name, value in page.values:
        if TOKEN in value and name not in _TEXTUAL:
            raise Found(f"the text stands in <{tag} {name}>")


def _as_xml(hostile: bytes, harmless: bytes) -> None:
    try:
        page, plain = ElementTree.fromstring(hostile), ElementTree.fromstring(harmless)
    except ElementTree.ParseError as error:
        raise Found(f"the file is no XML: {error}") from None
    known = {(each.tag, name) for each in plain.iter() for name in ("", *each.attrib)}
    for each in page.iter():
        for name in ("", *each.attrib):
            if (each.tag, name) not in known:
                raise Found(f"the picture has <{each.tag} {name}>, which it has not for a harmless name")
            if name and TOKEN in each.attrib[name] and name not in _TEXTUAL:
                raise Found(f"the text stands in <{each.tag} {name}>")


def _as_json(hostile: bytes, harmless: bytes) -> None:
    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shape(each) for name, each in value.items()}
        return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__

    if shape(json.loads(hostile)) != shape(json.loads(harmless)):
        raise Found("the document has another shape than for a harmless name")


def _as_csv(hostile: bytes, harmless: bytes) -> None:
    rows, known = (list(csv.reader(io.StringIO(each.decode(), newline=""))) for each in (hostile, harmless))
    if list(map(len, rows)) != list(map(len, known)):
        raise Found("the table has other rows than for a harmless name")
    for cell in (each for row in rows for each in row):
        if TOKEN in cell and cell[:1] in "=+-@\t\r":
            raise Found(f"a cell begins as a formula does: {cell!r}")


def _as_shell(hostile: bytes, harmless: bytes) -> None:
    try:
        words, known = (shlex.split(each.decode(), comments=True) for each in (hostile, harmless))
    except ValueError as error:
        raise Found(f"the script cannot be read: {error}") from None
    if len(words) != len(known):
        raise Found(f"the script has {len(words)} words, and {len(known)} for a harmless name")
    _as_lines(hostile, harmless)


def _as_python(hostile: bytes, harmless: bytes) -> None:
    def shape(text: bytes) -> list[str]:
        return [type(node).__name__ for node in ast.walk(ast.parse(text.decode()))]

    try:
        same = shape(hostile) == shape(harmless)
    except (SyntaxError, ValueError) as error:
        raise Found(f"the file is no Python: {error}") from None
    if not same:
        raise Found("the file has other statements than for a harmless name")


def _as_lines(hostile: bytes, harmless: bytes) -> None:
    lines, known = hostile.decode().splitlines(), harmless.decode().splitlines()
    if len(lines) != len(known):
        raise Found(f"the file has {len(lines)} lines, and {len(known)} for a harmless name")
    for sign in _controls(hostile.decode()):
        raise Found(f"the file holds the sign {sign!r}")


def _controls(text: str) -> Iterator[str]:
    return (sign for sign in text if (sign < " " and sign not in "\n\t\r") or "\x7f" <= sign <= "\x9f")


_LOOKS: dict[str, Callable[[bytes, bytes], None]] = {
    "text/html": _as_html,
    "image/svg+xml": _as_xml,
    "application/json": _as_json,
    "text/csv": _as_csv,
    "text/x-shellscript": _as_shell,
    "text/x-python": _as_python,
}

MARKUP = Suite(
    "markup",
    "texts that are code elsewhere, through every endpoint, page and download; parsers say that they stayed texts",
    attempt,
    limit=120.0,
    sample=4,
    share=0.5,
    needs=needs,
)
