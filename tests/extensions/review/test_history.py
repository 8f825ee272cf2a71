"""Public repairs as the oracle: what stood before is flagged with its cause, and neither repairs nor running rows err."""

from benchmarks.published_runs.review_rows import read_row
from pipeplan.extensions.review import RULES, estimate_or_none, judged
from tests.extensions.review.history import history

CAUSES = {
    "mb-5551-glm45-355b": {"layers-per-rank"},
    "mb-3589-qwen3vl-235b": {"layers-per-rank"},
    "mb-4999-glm5-inference": {"absorbed-latent-attention"},
    "mlm-5022-eval-gbs": {"eval-too-few-microbatches"},
    "nemo-12170-llama405b-nodes": {"gpus-not-divisible"},
    "nemo-12828-dsv2-grid": {"expert-grid"},
    "nemo-11127-starcoder-tp": {"groups-not-multiple"},
    "am-2575-ling1t-microbatches": {"automodel-too-few-microbatches"},
    "am-2546-hy3-grid": {"mesh-experts"},
    "rl-717-sft-1gpu": {"too-few-gpus"},
    "primus-930-dsv4-flash-layout": {"last-stage-heavy", "stages-unbalanced"},
    "mb-5832-qwen35-122b-sft": {"batch-not-divisible"},
}
"""Rules that name the cause of a repair."""

MUST = ("does-not-start", "stale-layout", "unbalanced")


def errors(facts) -> list[str]:
    rules = [rule for rule in RULES if rule.severity == "error"]
    return [fault.rule.id for fault in judged(facts, rules)]


def test_what_did_not_start_or_was_unbalanced_is_flagged():
    rows = [row for row in history("pairs.json") if row["fault"] in MUST]
    missed = []
    for row in rows:
        before, _ = read_row(row, "pairs.json")
        faults = {fault.rule.id for fault in judged(before, RULES) if fault.rule.severity != "advice"}
        if not faults or not faults & CAUSES.get(row["id"], faults):
            missed.append(row["id"])
    assert len(missed) <= 0.1 * len(rows), missed


def test_repairs_raise_no_error():
    rows = history("pairs.json")
    wrong = {row["id"]: result for row in rows if (result := errors(list(read_row(row, "pairs.json"))[1]))}
    assert len(wrong) <= 0.05 * len(rows), wrong


def test_running_configurations_raise_no_error():
    rows = history("known_good.json")
    wrong = {
        row["id"]: result for row in rows for facts in read_row(row, "known_good.json") if (result := errors(facts))
    }
    assert len(wrong) <= 0.05 * len(rows), wrong


def test_estimates_see_the_effect_of_memory_repairs():
    judgeable = 0
    for row in history("pairs.json"):
        if row["fault"] != "memory":
            continue
        before, after = (estimate_or_none(facts) for facts in read_row(row, "pairs.json"))
        if before is not None and after is not None:
            judgeable += 1
            assert before.fit != "fits", row["id"]
            assert after.peak_gib / after.limit_gib < before.peak_gib / before.limit_gib, row["id"]
    assert judgeable >= 2
