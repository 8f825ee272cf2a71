"""``pipeplan profile --from``, ``diff`` and ``explain`` on a run that somebody else has made."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "traces" / "data"
TORCHTITAN = DATA / "torchtitan_zbv_fsdp"


@pytest.mark.parametrize(
    ("folder", "names"), [(TORCHTITAN, "zbv interleaved-1f1b"), (DATA / "gpipe_fsdp", "gpipe 1f1b")]
)
def test_costs_from_traces_are_a_config_file(run, tmp_path, folder, names):
    code, out, err = run(f"profile --from {folder} -o {tmp_path / 'costs.yaml'}")
    assert (code, err) == (0, f"wrote {tmp_path / 'costs.yaml'}\n")
    assert "of 2 replicas, from" in out
    assert "step, measured" in out
    code, out, _ = run(f"compare {names} -c {tmp_path / 'costs.yaml'} --json")
    assert code == 0
    assert {each["microbatches"] for each in json.loads(out)["results"]} == {4}


def test_json_is_a_config_file_too_and_the_check_is_beside_it(run, tmp_path):
    code, out, err = run(f"profile --from {TORCHTITAN} --json")
    assert code == 0
    assert err.startswith("step: measured ")
    (tmp_path / "costs.json").write_text(out)
    assert run(f"simulate zbv -c {tmp_path / 'costs.json'} --json")[0] == 0


def test_diff_and_explain_take_the_same(run, tmp_path):
    run(f"profile --from {TORCHTITAN} -o {tmp_path / 'costs.yaml'}")
    code, out, _ = run(f"diff zbv {TORCHTITAN} -c {tmp_path / 'costs.yaml'} --json")
    assert code == 0
    assert json.loads(out)["unit"] == "ms"
    assert json.loads(out)["measured_of"] == "2 steps of 2 replicas, from 8 files"
    _, out, _ = run(f"diff zbv {TORCHTITAN} -c {tmp_path / 'costs.yaml'}")
    assert "of 2 steps of 2 replicas, from 8 files, the one of median length" in out
    assert run(f"explain {TORCHTITAN} --json")[0] == 0
    assert run(f"explain {TORCHTITAN}")[1].startswith("a run, measured, took ")
    code, _, err = run(f"simulate {TORCHTITAN} --json")
    assert code == 2
    assert "profile --from takes its costs" in err


def test_the_order_of_a_run_is_converted_to_a_schedule(run, tmp_path):
    assert run(f"export {TORCHTITAN} {tmp_path / 'order.csv'}")[0] == 0
    assert run(f"check {tmp_path / 'order.csv'}")[0] == 0
    assert (tmp_path / "order.csv").read_text().startswith("0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,")
    code, _, err = run("profile --from nowhere")
    assert (code, err) == (2, "pipeplan: cannot read the run nowhere: no such file or folder\n")


def test_stages_keep_their_column_beside_many_kinds(run):
    lines = run(f"profile --from {TORCHTITAN}")[1].splitlines()
    assert any(each.startswith("stage ") for each in lines)


@pytest.mark.needs("search")
def test_a_search_on_the_costs_of_a_v_says_which_placements_fit(run, tmp_path):
    run(f"profile --from {TORCHTITAN} -o {tmp_path / 'costs.yaml'}")
    code, _, err = run(f"search -c {tmp_path / 'costs.yaml'} --placement linear")
    assert (code, err) == (2, "pipeplan: a linear placement has 1 chunk(s) per rank, not 2: use placement v or loop\n")
    assert run(f"search -c {tmp_path / 'costs.yaml'} --evaluations 10 --json")[0] == 0


def test_an_input_is_not_overwritten(run, tmp_path):
    trace = tmp_path / "run" / "iteration_5" / "rank0_trace.json"
    trace.parent.mkdir(parents=True)
    trace.write_text("{}")
    code, _, err = run(f"profile --from {tmp_path / 'run'} -o {trace}")
    assert code == 2
    assert "is also an input" in err
    assert trace.read_text() == "{}"
