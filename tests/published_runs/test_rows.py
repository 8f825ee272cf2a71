from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.published_runs.files import read_runs
from benchmarks.published_runs.rows import row_from
from benchmarks.published_runs.schedules import chunks_of, layout_from, scheduled
from benchmarks.published_runs.settings import precision_of, software_of
from pipeplan.foundation.errors import InputError

PUBLISHED = Path(__file__).parents[3] / "shared" / "planning" / "published_runs.json"

ROW: dict[str, Any] = {
    "id": "zb-4-1.5B-p8-m24-b6-ZB-2p",
    "source": {"title": "Zero Bubble Pipeline Parallelism"},
    "model": {
        "name": "GPT 1.5B",
        "layers": 22,
        "hidden": 2304,
        "heads": 24,
        "kv_heads": 24,
        "head_dim": 96,
        "ffn": 9216,
        "vocab": 50304,
        "gated": False,
        "tied": True,
        "seq": 1024,
    },
    "hardware": {"gpu": "A100-SXM-80GB", "gpus_per_node": 8, "count": 8, "inter_node": "RoCE RDMA"},
    "parallel": {"tp": 1, "pp": 8, "dp": 1, "vp": 1},
    "batch": {"micro": 6, "microbatches": 24, "global": 144},
    "measured": {"samples_per_s_per_gpu": 14.5, "step_time_s": 1.2414, "peak_memory_gb": 59},
    "schedule": "ZB-2p",
    "recompute": "none",
    "precision": "bf16/fp16 mixed, Adam",
    "layout": "2 layers on the first and last stage, 3 on the others",
}


def changed(**parts):
    row = deepcopy(ROW)
    for part, change in parts.items():
        if isinstance(change, dict) and isinstance(row.get(part), dict):
            row[part].update(change)
        else:
            row[part] = change
    return row


def test_a_row_is_a_configuration():
    row = row_from(ROW)
    assert not row.refused
    assert row.assumed == ()
    asked = row.configuration
    assert asked is not None
    assert row.cluster is not None
    assert (asked.pipeline, asked.microbatches, asked.microbatch_size, asked.sequence) == (8, 24, 6, 1024)
    assert asked.layers == (2, 3, 3, 3, 3, 3, 3, 2)
    assert (asked.schedule, asked.in_flight, asked.software) == ("zb-auto", 16.0, "zero-bubble")
    assert asked.recompute == ()
    assert row.cluster.gpus == 8
    assert row.cluster.gpu.name == "a100-sxm-80gb"
    assert row.measured.step_time == 1.2414
    assert row.measured.peak_bytes == 59 * 2**30


def test_copies_of_a_sharded_state():
    parallel = {"pp": 1, "dp": None, "dp_replicate": 2, "dp_shard": 4, "fsdp": "FSDP2"}
    hybrid = row_from(changed(parallel=parallel, schedule=None, layout=None, batch={"global": 48})).configuration
    assert hybrid is not None
    assert (hybrid.data, hybrid.replicate, hybrid.shards, hybrid.zero) == (8, 2, 4, 3)


def test_a_fully_sharded_run_is_not_split_unless_it_says_so():
    parallel = {"tp": None, "pp": None, "dp": 8, "fsdp": "full"}
    row = row_from(changed(parallel=parallel, schedule=None, layout=None))
    assert row.configuration is not None
    assert (row.configuration.tensor, row.configuration.pipeline) == (1, 1)
    assert row.assumed[0] == "tensor and pipeline degree: 1, because parameters are fully sharded"
    unsplit = row_from(changed(parallel={"tp": None, "zero": 1}))
    assert unsplit.refused == "the row has no parallel.tp"


def test_an_id_decides_nothing():
    assert row_from(changed(id="another")).configuration == row_from(ROW).configuration


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("text", "invalid row: expected a mapping"),
        ({}, "has no model.seq"),
        (changed(kind="layer times"), "the row holds layer times: expected a whole step"),
        (changed(model=None), "invalid 'model' of the row: expected a mapping"),
        (changed(parallel={"tp": None}), "has no parallel.tp"),
        (changed(parallel={"tp": 0}), "invalid parallel.tp 0: expected an integer >= 1"),
        (changed(parallel={"pp": "8"}), "invalid parallel.pp '8': expected an integer"),
        (changed(parallel={"pp": True}), "invalid parallel.pp 'True'"),
        (changed(measured={"step_time_s": -1}), "invalid measured.step_time_s -1: expected a number above 0"),
        (changed(schedule=7), "invalid 'schedule' of the row: expected text"),
        (changed(schedule="ZB-9p"), "unknown schedule 'ZB-9p'"),
        (changed(layout="as one likes"), "unknown layout 'as one likes'"),
        (changed(precision="posits"), "unknown precision 'posits'"),
        (changed(hardware={"gpu": "Z100"}), "unknown GPU 'Z100'"),
        (changed(hardware={"count": 9}), "9 GPUs do not fill whole nodes of 8"),
        (changed(model={"name": "Nobody 1B", "layers": None, "hidden": None}), "lacks layers, hidden"),
    ],
)
def test_a_row_that_cannot_be_predicted_says_why(row, reason):
    found = row_from(row, 3)
    assert reason in found.refused
    assert found.configuration is None


def test_what_a_row_does_not_say_is_assumed_and_said():
    row = row_from(changed(batch={"micro": None}, precision=None, recompute=None, parallel={"dp": None}))
    assert any("microbatch size: 1" in each for each in row.assumed)
    assert any("precision: bf16" in each for each in row.assumed)
    assert any("recomputation" in each for each in row.assumed)
    assert row.configuration is not None
    assert row.configuration.data == 1


def test_a_rate_gives_the_step():
    row = row_from(changed(measured={"step_time_s": None, "tokens_per_s_per_gpu": 14.5 * 1024}))
    assert row.measured.step_time == pytest.approx(144 / (8 * 14.5))


@pytest.mark.parametrize(
    ("name", "pipeline", "chunks", "strategy", "in_flight"),
    [
        ("1F1B", 8, 1, "1f1b", None),
        ("1F1B-I", 8, 3, "interleaved-1f1b", None),
        ("interleaved-1f1b", 8, 1, "1f1b", None),
        ("ZB-1p", 8, 1, "zb-auto", 1.0),
        ("ZB-V", 8, 2, "zbv", None),
        ("zb (printed zbb)", 8, 1, "zb-h1", None),
        ("V-Half", 8, 2, "v-half", None),
        ("DualPipe", 16, 1, "dualpipe", None),
        (None, 4, 5, "interleaved-1f1b", None),
        ("none", 1, 1, "1f1b", None),
    ],
)
def test_schedules_by_the_names_of_papers(name, pipeline, chunks, strategy, in_flight):
    found = scheduled(name, pipeline, chunks)
    assert (found.strategy, found.in_flight) == (strategy, in_flight)


@pytest.mark.parametrize(
    ("framework", "batch", "expected"),
    [
        ("torchtitan 2024-12", {"micro": 32, "global": 64}, (4, 8)),
        ("torchtitan 2024-12", {"micro": 32}, (4, 8)),
        ("torchtitan", {"global": 64}, (1, 32)),
        ("torchtitan", {"micro": 2, "global": 64}, (2, 16)),
        ("Megatron Core", {"micro": 32, "global": 64}, (32, 1)),
    ],
)
def test_torchtitan_splits_the_batch_of_a_replica(framework, batch, expected):
    document = changed(framework=framework, schedule="1F1B", layout=None, hardware={"count": 16}, parallel={"dp": 2})
    document["batch"] = batch
    found = row_from(document).configuration
    assert found is not None
    assert (found.microbatch_size, found.microbatches) == expected


def of_batch(pipeline, batch, **parts):
    document = changed(framework="torchtitan", schedule="1F1B" if pipeline > 1 else None, layout=None, **parts)
    document["hardware"] |= {"count": 8 * pipeline}
    document["parallel"] = {"tp": 1, "pp": pipeline, "dp": 8, "fsdp": "FSDP2"}
    document["batch"] = batch
    return row_from(document)


def test_a_local_batch_is_what_a_replica_computes_at_once():
    cases = (
        # pipeline, batch, then size and number of microbatches, global batch
        (2, {"local": 8, "micro": 1}, (1, 8, 64)),
        (4, {"local": 16, "micro": 2}, (2, 8, 128)),
        (2, {"local": 8}, (1, 8, 64)),
        (1, {"local": 8, "micro": 1}, (1, 8, 64)),
        (1, {"local": 8}, (8, 1, 64)),
        (1, {"local": 8, "global": 128}, (8, 2, 128)),
        (2, {"local": 8, "micro": 1, "global": 128}, (1, 16, 128)),
    )
    for pipeline, batch, expected in cases:
        found = of_batch(pipeline, batch).configuration
        assert found is not None
        assert (found.microbatch_size, found.microbatches, found.global_batch) == expected, batch
    assert any("2 passes of the pipeline" in text for text in of_batch(2, {"local": 8, "global": 128}).assumed)
    assert "batch.local 8 is not a multiple of batch.micro 3" in of_batch(2, {"local": 8, "micro": 3}).refused
    assert "batch.global 65 is not a multiple" in of_batch(2, {"local": 8, "global": 65}).refused
    assert "invalid batch.local 0" in of_batch(2, {"local": 0}).refused


def test_notes_decide_nothing():
    notes = "async TP; recomputes RMSNorm and MLA up-projection; 24.07; peak of the reporting rank"
    for row in (
        ROW,
        changed(framework="NeMo", recompute=None),
        changed(source={"title": "torchtitan"}, recompute=None),
    ):
        assert row_from(row | {"notes": notes}) == row_from(row)
    golden = changed(source={"title": "Megatron-LM functional release tests, golden values"})
    assert row_from(golden).measured.peak_rank == 7, "the last rank logs"


def test_nemo_automodel_spreads_experts_over_all_ranks():
    document = changed(
        framework="PyTorch FSDP2 (AutoModel)",
        hardware={"gpu": "H100-SXM-80GB"},
        schedule=None,
        layout=None,
        recompute=None,
    )
    document["model"] = {"name": "qwen3-30b-a3b", "seq": 4096}
    document["parallel"] = {"tp": 1, "pp": 1, "dp": 8, "fsdp": "FSDP2"}
    document["batch"] = {"micro": 1, "global": 64}
    row = row_from(document)
    found = row.configuration
    assert found is not None
    assert (found.expert, found.zero, found.software) == (8, 3, "automodel+tokens-to-neighbours")
    assert any("share the experts evenly" in each for each in row.assumed)


def test_chunks_that_are_not_said():
    assert chunks_of("interleaved-1f1b", 8, 24, 6, unsaid=False) == (6, "")
    assert chunks_of("interleaved-1f1b", 8, 24, None, unsaid=False)[0] == 3
    assert chunks_of("interleaved-1f1b", 8, 126, None, unsaid=False)[0] == 2, "one layer less at both ends"
    assert chunks_of(None, 8, 56, None, unsaid=True)[0] == 7
    assert chunks_of(None, 8, 56, None, unsaid=False) == (1, "")
    assert chunks_of("zbv", 8, 56, None, unsaid=False) == (2, "")


def test_layouts_in_words():
    words = "2 layers on the first and last stage, 3 on the others"
    assert layout_from(words, 4, 1, 10) == (2, 3, 3, 2)
    assert layout_from("3 layers a stage, one less on first and last", 4, 1, 10) == (2, 3, 3, 2)
    assert layout_from(words, 4, 2, 14) == (1, 2, 2, 2, 2, 2, 2, 1)
    assert layout_from(None, 4, 1, 12) is None
    with pytest.raises(InputError, match="unknown layout 'some'"):
        layout_from("some", 4, 1, 12)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"source": {"title": "SimuMax B200 release v1.2 (Megatron-LM 0.14 real runs)"}}, "megatron-core-plain"),
        ({"framework": "NeMo/Megatron Core", "source": {"title": "NVIDIA DGX Cloud"}}, "nemo"),
        ({"framework": "NeMo", "source": {"title": "NeMo", "locator": "24.07, table 2"}}, "nemo-2024"),
        ({"framework": "NeMo", "source": {"title": "NVIDIA DGX Cloud", "locator": "at tag v25.02.02"}}, "nemo"),
        ({"framework": "NeMo", "notes": "as the 24.07 summary prints"}, "nemo"),
        ({"framework": "NeMo", "release": "24.07"}, "nemo-2024"),
        ({"framework": "NeMo", "source": {"title": "NeMo", "version": "24.07"}}, "nemo-2024"),
        ({"framework": "NeMo", "source": {"title": "NeMo", "date": "2024-07-15"}}, "nemo-2024"),
        ({"framework": "NeMo", "software": "hai-llm"}, "hai-llm"),
        ({"framework": "torchtitan, async TP", "precision": "bf16"}, "torchtitan+hidden-tensor"),
        ({"source": {"title": "torchtitan benchmarks, asyncTP 2025-06"}, "notes": "async TP"}, "torchtitan"),
        ({"source": {"title": "torchtitan benchmarks"}, "precision": "bf16, eager"}, "torchtitan-eager"),
        ({"source": {"title": "MPT training benchmarks"}, "precision": "bf16, PURE bf16"}, "llm-foundry-pure"),
        ({"framework": "MegaScale"}, "megascale"),
        ({"parallel": {"fsdp": "full"}}, "torchtitan"),
        ({"hardware": {"gpu": "A100"}, "model": {"gated": False}}, "megatron-lm-2021"),
        ({"source": "somebody"}, "megatron-core"),
    ],
)
def test_software_by_words(row, name):
    assert software_of(row)[0] == name


def test_a_release_that_a_row_does_not_have_is_assumed_and_said():
    assert software_of({"framework": "NeMo"})[1] == "software: release of nemo: the current one"
    dated = {"framework": "NeMo", "source": {"date": "2024-07"}}
    assert software_of(dated)[1] == "software: release of nemo: 24.07, by the date of the source"
    assert software_of({"framework": "NeMo", "release": "25.02"})[1] == ""
    assert "asynchronous" in software_of({"source": {"title": "torchtitan benchmarks, asyncTP 2025-06"}})[1]
    assert "unknown software 'nemoo'" in row_from(changed(software="nemoo")).refused


def bridge_row(release, *, model="", gpu="GB200", precision="mxfp8", **parallel):
    source = {"title": "Megatron Bridge performance summary", "locator": f"{release} container"}
    named = {"model": {"name": model}, "hardware": {"gpu": gpu, "gpus_per_node": 8}}
    return {"source": source, "precision": precision, "parallel": parallel, **named}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (bridge_row("26.08"), "megatron-bridge"),
        (bridge_row("26.06.01", gpu="B300", model="of-tomorrow"), "megatron-bridge"),
        (bridge_row("26.04"), "megatron-bridge-26.04"),
        (bridge_row("26.08", gpu="H100-SXM-80GB", precision="fp8"), "megatron-bridge-26.04"),
        (bridge_row("26.08", precision="bf16"), "megatron-bridge-26.04"),
        (bridge_row("26.08", pp=4, vp=1), "megatron-bridge-26.04"),
        (bridge_row("26.08", pp=4, vp=2), "megatron-bridge"),
        (bridge_row("26.08", model="nemotron-3-nano"), "megatron-bridge-26.04"),
    ],
)
def test_releases_of_recipes(row, name):
    assert software_of(row)[0] == name


def test_precisions_by_words():
    assert precision_of("bf16, DEFAULT amp_fp8")[0] == "fp8"
    assert precision_of("fp8-mx")[0] == "mxfp8"
    assert precision_of("nvfp4")[0] == "nvfp4"
    assert precision_of(None) == ("bf16", "precision: bf16")


@pytest.fixture(scope="module")
def published():
    if not PUBLISHED.exists():
        pytest.skip("the published runs are not beside this checkout")
    return read_runs(PUBLISHED)


def test_every_published_row_is_read_or_refused_in_a_sentence(published):
    assert len(published) == 550
    refused = [row for row in published if row.refused]
    assert len(refused) <= 30
    for row in refused:
        assert "Error" not in row.refused
        assert "the row has no" in row.refused or "the row holds" in row.refused or "lacks" in row.refused
    for row in published:
        if not row.refused:
            assert row.configuration is not None
            assert row.cluster is not None
            assert row.configuration.gpus == row.cluster.gpus
