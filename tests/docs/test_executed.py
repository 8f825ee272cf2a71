"""Pages that are run: what is compared, what is written, what is said where a page is wrong."""

import pytest

from docs.build import executed

PAGE = """# A page

<!-- before: echo hidden > made -->

```yaml title="costs.yaml"
ranks: 3
```

```console
$ cat costs.yaml \\
    made
ranks: 3
hidden
$ echo $COLUMNS
80
```

<!-- exits 3 -->
<!-- shows 1, 3-4 -->
```console
$ seq 1 9; exit 3
1
...
3
4
...
```

<!-- numbers vary -->
```console
$ echo it took 2.5 s
it took 11 s
```

<!-- not run -->
```console
$ rm -rf /
```

```shell
exit 1
```

```python
answer = 42
```

Between them stands a sentence.

```python
print(answer)
```

```text
42
```
"""


def ran(text, tmp_path):
    run = executed.Run(tmp_path)
    return run.page(text), run.faults


def test_a_page_that_is_right_stays_as_it_is(tmp_path):
    assert ran(PAGE, tmp_path) == (PAGE, [])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("hidden\n$", "shown\n$"), ("3\n4\n...\n", "4\n...\n"), ("it took 11", "they took 11"), ("text\n42", "text\n43")],
)
def test_a_wrong_output_is_told_and_written_anew(right, wrong, tmp_path):
    assert PAGE.count(right) == 1
    page = PAGE.replace(right, wrong)
    written, faults = ran(page, tmp_path)
    assert len(faults) == 1
    assert faults[0].startswith("line ")
    assert "--- the page" in faults[0]
    assert written == PAGE.replace("it took 11", "it took 2.5") if "took" in right else written == PAGE


def test_an_exit_code_that_nobody_announced_is_a_fault(tmp_path):
    _, faults = ran(PAGE.replace("<!-- exits 3 -->\n", ""), tmp_path)
    assert len(faults) == 1
    assert "exits with 3, not 0" in faults[0]


def test_an_example_that_fails_is_a_fault(tmp_path):
    _, faults = ran(PAGE.replace("print(answer)", "print(anwser)"), tmp_path)
    assert any("NameError" in fault for fault in faults)


def test_an_output_that_varies_is_not_compared(tmp_path):
    page = "<!-- output varies -->\n```console\n$ date\nyesterday\n```\n"
    assert ran(page, tmp_path) == (page, [])


def test_a_page_shows_what_its_commands_made(tmp_path, monkeypatch):
    monkeypatch.setattr(executed, "KEPT", tmp_path / "kept")
    page = tmp_path / "first.md"
    page.write_text("```console\n$ echo drawn > a.svg; echo beside > b.svg\n```\n\n![A picture](made/first/a.svg)\n")
    assert list(executed.left_behind(page)) == [("made/first/a.svg", b"drawn\n")]
    page.write_text(page.read_text().replace("drawn", "redrawn"))
    assert list(executed.left_behind(page)) == [("made/first/a.svg", b"redrawn\n")]
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_how_far_a_command_is_is_no_output(tmp_path):
    page = "```console\n$ echo 'best 3.5, gap 0.4% (17%)' >&2; echo 'F 11.0 (30.4%)'\nF 11.0 (30.4%)\n```\n"
    assert ran(page, tmp_path) == (page, [])


def test_a_picture_that_no_command_makes_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(executed, "KEPT", tmp_path / "kept")
    page = tmp_path / "first.md"
    page.write_text("```console\n$ false > b.svg\n```\n\n![A picture](made/first/a.svg)\n")
    with pytest.raises(FileNotFoundError, match=r"(?s)no command made a.svg.*exits with 1"):
        list(executed.left_behind(page))
