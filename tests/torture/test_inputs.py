"""The suites of what comes in would find something: every option has hostile values, and each judge sees what is planted."""

import random

import pytest

import pipeplan
from tests.torture.calls import suite as calls
from tests.torture.calls.functions import HONEST, functions, names_of
from tests.torture.commands.lines import command_line
from tests.torture.commands.options import commands, options_of
from tests.torture.commands.outputs import fault_of, judge_outputs, seen
from tests.torture.commands.plainly_wrong import judge_plainly_wrong, with_a_wrong_value
from tests.torture.commands.values import hostile
from tests.torture.honest_files import honest_files, put
from tests.torture.hostile_files.again import judge_reading
from tests.torture.hostile_files.breaking import broken
from tests.torture.hostile_files.readers import line_for
from tests.torture.judging import Ran
from tests.torture.suite import Found


def test_every_option_of_every_command_has_hostile_values():
    for command in commands():
        options = options_of(command)
        assert all(option.kind in ("int", "float", "bool", "path", "text") for option in options)
        assert all(isinstance(hostile(option, random.Random(seed)), str) for option in options for seed in range(3))
    kinds = {name: option.kind for option in options_of("search") for name in option.names}
    assert kinds["--seconds"] == kinds["--forward-times"] == "float"
    assert kinds["--ranks"] == kinds["--seed"] == "int"
    assert (kinds["--store"], kinds["--output"], kinds["--json"], kinds["--placement"]) == (
        "path",
        "path",
        "bool",
        "text",
    )


def test_a_seed_is_a_case():
    assert [command_line(random.Random(seed)) for seed in range(50)] == [
        command_line(random.Random(seed)) for seed in range(50)
    ]
    for name, content in honest_files().items():
        assert broken(content, name, random.Random(1)) == broken(content, name, random.Random(1))
        assert line_for(name, random.Random(1)) == line_for(name, random.Random(1))


def test_every_file_can_be_broken_and_some_would_run_code():
    code = 0
    for seed in range(1500):
        luck = random.Random(seed)
        name = luck.choice([each for each in honest_files() if each != "shipped.yaml"])
        code += b"!!python/object" in broken(honest_files()[name], name, luck)
    assert code > 15


def test_no_command_line_listens_elsewhere_or_writes_to_a_device():
    for seed in range(3000):
        line = command_line(random.Random(seed))
        assert not [word for word in line if "0.0.0.0" in word or word.endswith(("=::", ".com"))]
        assert not [
            word
            for word in line
            if "/dev/" in word or word.startswith("../") or "=../" in word.replace("host=../x", "")
        ]


def test_every_function_is_called_with_names_that_it_takes():
    assert set(HONEST) < set(functions())
    assert {"ranks", "forward_times", "config"} < set(names_of("simulate"))
    assert {"theme", "retime"} <= set(names_of("convert"))
    assert "progress" not in names_of("search")


def wrote(code: int, *arguments: str, err: bytes = b"") -> Ran:
    return Ran(arguments, code, b"", err, 0.1)


def test_what_is_left_behind_is_found(tmp_path):
    put(tmp_path, ("order.json",))
    before = seen(tmp_path)
    judge_outputs(wrote(0, "check", "order.json"), tmp_path, before)
    (tmp_path / "x.json").write_text("{}")
    judge_outputs(wrote(0, "simulate", "-o", "x.json"), tmp_path, before)
    judge_outputs(wrote(2, "simulate", err=b"wrote x.json\n"), tmp_path, before)
    with pytest.raises(Found, match=r"exit code 2, and 'x\.json' was written"):
        judge_outputs(wrote(2, "simulate", "-o", "x.json"), tmp_path, before)
    with pytest.raises(Found, match=r"exit code 0, and 'x\.json' was written"):
        judge_outputs(wrote(0, "simulate"), tmp_path, before)
    (tmp_path / "x.json").unlink()
    (tmp_path / "order.json").unlink()
    with pytest.raises(Found, match=r"'order\.json' is gone"):
        judge_outputs(wrote(0, "check", "order.json"), tmp_path, before)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[(name, b"") for name in ("x.json", "x.csv", "x.png")],
        *[("x.png", b"\x89PNG\r\n\x1a\n half"), ("x.pdf", b"%PDF-1.4 half"), ("x.html", b"<!doctype html><p>")],
        *[("x.svg", b"<svg><g></svg>"), ("x.json", b'{"a": NaN}'), ("x.yaml", b"a: [1"), ("x.txt", b"\xff")],
    ],
)
def test_a_file_that_is_not_whole_is_found(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert fault_of(tmp_path / name) is not None


def test_what_is_read_as_something_else_after_writing_is_found(tmp_path, monkeypatch):
    put(tmp_path, ("order.json", "json.json"))
    for name in ("order.json", "json.json"):
        judge_reading(tmp_path / name, tmp_path)
    save = pipeplan.save
    other = pipeplan.simulate("gpipe", ranks=2, microbatches=3)
    monkeypatch.setattr(pipeplan, "save", lambda _, path: save(other.schedule, path))
    with pytest.raises(Found, match="the kind of what was read is another"):
        judge_reading(tmp_path / "json.json", tmp_path)
    with pytest.raises(Found, match="an op of what was read is another"):
        judge_reading(tmp_path / "order.json", tmp_path)


@pytest.mark.parametrize("error", [KeyError("ranks"), TypeError("no number"), UserWarning("odd"), RecursionError()])
def test_errors_that_are_not_ours_are_found_in_calls(tmp_path, monkeypatch, error):
    def wrong(*_: object, **__: object) -> None:
        raise error

    monkeypatch.chdir(tmp_path)
    for name in functions():
        monkeypatch.setattr(pipeplan, name, wrong)
    monkeypatch.setattr(calls, "_arguments", lambda name, luck: ([], {"ranks": 2}))
    monkeypatch.setattr(calls, "_ours", tuple)
    with pytest.raises(Found, match=type(error).__name__):
        calls._attempt(1, tmp_path)


def test_a_line_with_one_wrong_value_must_be_refused():
    lines = [
        with_a_wrong_value(["simulate", "zbv", "-p", "2", "--ranks", "3"], random.Random(seed)) for seed in range(50)
    ]
    assert all(line[:2] == ["simulate", "zbv"] and "=" in line[-1] for line in lines)
    assert not any("--ranks" in line[:-1] for line in lines if "--ranks=" in line[-1])
    for line in lines:
        judge_plainly_wrong(wrote(2, *line))
        with pytest.raises(Found, match="was given"):
            judge_plainly_wrong(wrote(0, *line))
