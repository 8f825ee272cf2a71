"""What stands only in ``export``: its formats, and the passes that it takes."""

import json
import re
from pathlib import Path

import pytest

import pipeplan
from pipeplan.answers.outputs import export_formats, output_endings, require_own_ending
from pipeplan.foundation.errors import InputError

PLAN = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
SPLIT = "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n"


def test_help_lists_the_formats(run):
    assert "pipeplan export lists" in " ".join(run("export --help")[1].split())
    listed = run("export")[1]
    assert all(re.search(rf"(?m)^{each.name} ", listed) for each in export_formats().values())
    refused = run("export 1f1b -o a.unknown")[2]
    assert all(ending in refused for ending in output_endings())


def test_backwards_are_split_merged_and_retimed(run):
    Path("plan.csv").write_text(PLAN)
    assert run("export plan.csv --to torch-csv --split-backward") == (0, SPLIT, "")
    assert run("export plan.csv split.csv --split-backward")[0] == 0
    assert Path("split.csv").read_text() == SPLIT
    assert run("export split.csv --to torch-csv --merge-backward") == (0, PLAN, "")
    code, out, _ = run("export 1f1b -p 4 -m 4 --to json --split-backward --retime")
    assert code == 0
    assert json.loads(out)["rows"][0][-2:] == ["0I3", "0W3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("export plan.csv --to torch-csv --split-backward --merge-backward", "undo each other"),
        ("export plan.csv a.csv --retime", "no weight backwards (W) to retime"),
        ("export run.json a.csv --split-backward", "run.json holds a timeline: only the ops of a schedule"),
        ("export plan.csv a.costs.json", "would hold the costs of one schedule, but this is a schedule"),
        ("export plan.csv a.csv -f 1", "--forward-times does not apply to a file that is converted"),
        (
            "export --to json --mtp 1",
            "--mtp-layers is for the settings of a trainer (automodel, megatron, megatron-bridge",
        ),
        ("export plan.csv --to json --theme dark", "theme is for pictures"),
        ("export --to megatron --csv a.csv", "csv does not apply to megatron"),
        ("export --to torchtitan --trainer-version main", "set --sequence-length to the tokens per sequence"),
        ("export interleaved-1f1b -v 3 --to torchtitan", "set --layers-per-stage to the layers of each of its 12"),
        ("export plan.csv --to torch-csw", "unknown format 'torch-csw'; did you mean 'torch-csv'?"),
    ],
)
def test_what_cannot_be_is_said(run, line, message):
    Path("plan.csv").write_text(PLAN)
    assert run("simulate plan.csv -o run.json")[0] == 0
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("a.csv").exists()


def test_a_trainers_settings_and_the_csv_that_they_name(run):
    line = "export zbv -p 2 -m 4 --to torchtitan --layers-per-stage 0 2,1 1 --microbatch-size 2"
    code, out, err = run(line)
    assert code == 0
    assert "--parallelism.pipeline_parallel_schedule_csv zbv.csv\n" in out
    assert "tok_embeddings layers.0,layers.1 layers.2 layers.3,norm,lm_head\n" in out
    assert "not written: zbv.csv, which these settings refer to; " in err
    assert "warning: with torchtitan's default loss" in err
    assert not Path("zbv.csv").exists()
    assert "wrote zbv.csv, which these settings refer to; " in run(f"{line} --csv zbv.csv")[2]
    assert Path("zbv.csv").read_text() == run("export zbv -p 2 -m 4 --to torch-csv")[1]
    Path("plans").mkdir()
    code, out, err = run(f"{line} -o plans/a.torchtitan.sh")
    assert (code, out) == (0, "")
    assert "wrote plans/a.torchtitan.sh\nwrote plans/a.torchtitan.csv, which plans/a.torchtitan.sh refers to; " in err
    assert (
        "--parallelism.pipeline_parallel_schedule_csv plans/a.torchtitan.csv\n"
        in Path("plans/a.torchtitan.sh").read_text()
    )
    assert Path("plans/a.torchtitan.csv").read_text() == run("export zbv -p 2 -m 4 --to torch-csv")[1]
    assert run(f"{line} -o plans/a.torchtitan.sh --csv b.csv")[0] == 0
    assert Path("b.csv").read_text() == Path("plans/a.torchtitan.csv").read_text()


def test_settings_never_overwrite_the_schedule_that_they_are_of(run):
    Path("plan.csv").write_text(PLAN)
    code, _, err = run("export plan.csv --to torchtitan -o plan.sh")
    assert code == 2
    assert "never overwritten" in err
    assert Path("plan.csv").read_text() == PLAN
    assert not Path("plan.sh").exists()
    assert run("export plan.csv --to torchtitan -o settings.sh")[0] == 0
    assert Path("settings.csv").read_text() == PLAN


def test_an_ending_of_another_format_is_refused(run):
    assert run("export 1f1b -p 2 -m 2 --to torch-csv -o x.png") == (
        2, "", "pipeplan: torch-csv is not written to a .png file: write it to x.csv\n",
    )  # fmt: skip
    with pytest.raises(InputError, match=r"torchtitan is not written to a \.toml file: write it to a.torchtitan.sh"):
        pipeplan.export("1f1b", to="torchtitan", ranks=2, microbatches=2).save("a.toml")
    assert not list(Path().iterdir())
    endings = {*output_endings(), ".toml", ".yaml", ".py"}
    for to, form in export_formats().items():
        own = {form.ending[place:] for place, letter in enumerate(form.ending) if letter == "."}
        for ending in endings - own:
            with pytest.raises(
                InputError, match=rf"{to} is not written to a {ending} file: write it to b.a{form.ending}"
            ):
                require_own_ending(to, Path(f"b.a{ending}"))
        for ending in (*own, "", ".unknown"):
            require_own_ending(to, Path(f"b.a{ending}"))
    require_own_ending("torch-csv", Path("/dev/stdout"))


def test_settings_on_stdout_leave_an_input_that_they_would_name_as_it_is(run):
    Path("plan.csv").write_text(SPLIT)
    code, out, err = run("export plan.csv --to torchtitan --merge-backward --layers-per-stage 1 1 --csv plan.csv")
    assert code == 0
    assert "plan.csv" in out
    assert "plan.csv, which these settings refer to, is an input and is not overwritten" in err
    assert Path("plan.csv").read_text() == SPLIT


def test_the_formats_are_listed_where_none_is_named(run):
    code, out, err = run("export")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(export_formats())
    assert run("export zbv -p 2") == (2, out, "pipeplan: choose one of these formats with --to, or an output file\n")
    assert not list(Path().iterdir())


def test_the_suffix_of_the_output_selects_the_format_where_none_is_named(run):
    assert run("export 1f1b -p 2 -m 2 -o a.csv") == (0, "", "wrote a.csv\n")
    assert Path("a.csv").read_text() == PLAN
    assert run("export a.csv -o b.svg --theme dark") == (0, "", "wrote b.svg\n")
    for line in ("export a.csv c.svg --theme dark", "convert a.csv d.svg --theme dark"):
        assert run(line)[0] == 0
        assert Path(line.split()[2]).read_bytes() == Path("b.svg").read_bytes()


def test_settings_in_a_pipe_come_alone(run):
    code, _, err = run("export 1f1b -p 2 -m 2 --to torchtitan -o /dev/null")
    assert (code, err) == (0, "wrote /dev/null\n")
    assert list(Path().iterdir()) == []
