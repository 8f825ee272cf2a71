"""A name in a message does nothing to a terminal."""

from pathlib import Path

from pipeplan.cli import main


def test_escape_codes_in_the_name_of_a_file_are_shown(capsys):
    Path("b\x1b[31m.csv").write_text("0F0,0B0")
    assert main(["check", "b\x1b[31m.csv"]) == 0
    assert main(["simulate", "b\x1b[31m.csv", "--no-visualization", "-o", "a\x1b.json"]) == 0
    assert main(["simulate", "no\x1b[31m.csv"]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"b\x1b[31m.csv is valid" in out
    assert r"wrote a\x1b.json" in err
    assert r"no\x1b[31m.csv" in err
