"""What earlier versions wrote is read, with the same figures, and answers have every key that they had."""

import contextlib
import io
import json
import math
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import pipeplan
from pipeplan.answers.schemas import every, schema
from pipeplan.cli import main
from pipeplan.costs import SettingsKeywords
from pipeplan.extensions.search.answers.search_record import SearchRecord
from pipeplan.formats import formats, read_file
from pipeplan.foundation.documents import ENDINGS
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.records import schema_of
from pipeplan.foundation.sweeps.store import Store
from tests.corpus.make import ANSWERS, HERE, frozen
from tests.corpus.named import named
from tests.corpus.reading import figures
from tests.plans import fitting_plan, missing_plan

VERSIONS = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
FILES = [
    (folder, name, said)
    for folder in VERSIONS
    for name, said in json.loads((folder / "files.json").read_text()).items()
]
KEPT = [(folder, name) for folder in VERSIONS for name in json.loads((folder / "answers.json").read_text())]
SCHEMAS = [path for folder in VERSIONS for path in sorted((folder / "schemas").glob("*.json"))]

QUICK = ["simulate", "compare", "explain", "search", "pareto", "schedules-one", "machines", "models", "gpus"]
QUICK += ["check", "check-invalid", "diff", "estimate"]
"""Answers that are asked for again; of a plan and a training run the schema speaks."""


def test_this_version_has_its_corpus():
    assert ".".join(pipeplan.__version__.split(".")[:2]) in [folder.name for folder in VERSIONS]


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_nothing_in_a_corpus_was_edited(folder):
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in frozen(folder)} == sums


def assert_same(now: Any, then: Any, place: str = "") -> None:
    """Every key that was there holds what it held; there may be more keys."""
    if isinstance(then, dict):
        assert isinstance(now, dict), place
        for key, value in then.items():
            assert key in now, f"{place}.{key} is gone"
            assert_same(now[key], value, f"{place}.{key}")
    elif isinstance(then, list):
        assert len(now) == len(then), place
        for number, (one, other) in enumerate(zip(now, then, strict=True)):
            assert_same(one, other, f"{place}[{number}]")
    elif isinstance(then, float):
        assert math.isclose(now, then, rel_tol=1e-9, abs_tol=1e-12), place
    else:
        assert now == then, place


def in_lists(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(("folder", "name", "said"), FILES, ids=[f"{each[0].name}-{each[1]}" for each in FILES])
def test_a_file_is_read_as_it_was(folder, name, said, tmp_path):
    if said["holds"] == "store" and folder.name != VERSIONS[-1].name:
        pytest.skip("a store is of its version")
    assert_same(in_lists(figures(folder / "files" / name, said["holds"], tmp_path)), said["figures"], name)


def test_every_format_that_is_read_has_a_file():
    """One that is added gets its file in the corpus of the version that brings it."""
    names = [name for folder in VERSIONS for name in json.loads((folder / "files.json").read_text())]
    endings = {each.ending for each in formats().values() if each.read is not None}
    assert [ending for ending in endings if not any(name.endswith(ending) for name in names)] == []
    assert {Path(name).suffix for name in names} >= ENDINGS - {".yml"}


def test_every_schema_is_in_a_corpus():
    assert {path.stem for path in SCHEMAS} >= set(every())
    assert {json.loads((HERE / "0.1" / "answers.json").read_text())[name]["schema"] for _, name in KEPT} >= {
        name for name in every() if name.startswith("answer-")
    }


def opened(found: Any) -> Any:
    """A schema with which further keys are right."""
    if isinstance(found, dict):
        return {
            key: opened(value) for key, value in found.items() if key != "additionalProperties" or value is not False
        }
    return [opened(each) for each in found] if isinstance(found, list) else found


def test_an_answer_that_was_given_fits_todays_schema():
    """So what reads today's answers reads those."""
    for folder, name in KEPT:
        said = json.loads((folder / "answers.json").read_text())[name]["schema"]
        answer = json.loads((folder / "answers" / f"{name}.json").read_text())
        then = json.loads((folder / "schemas" / f"{said}.json").read_text())
        assert [error.message for error in Draft202012Validator(then).iter_errors(answer)] == [], folder


GONE_FIELDS: dict[str, frozenset[str]] = {
    "ComparisonRecord": frozenset({"leads", "changes"}),
    **dict.fromkeys(
        ("ResultRecord", "ExplanationRecord", "TrainingRunRecord", "TimelineRecord"), frozenset({"jitter", "slow_rank"})
    ),
    "ObjectiveRecord": frozenset({"of"}),
    "EstimatedRowRecord": frozenset({"measured", "error"}),
}
"""Fields of earlier versions that were removed on purpose, by the definition that had them."""


def schema_of_then(path: Path) -> Any:
    """Return the schema of an earlier version without the fields that are gone."""
    then = json.loads(path.read_text())
    for name, gone in GONE_FIELDS.items():
        if (record := then.get("$defs", {}).get(name)) is not None:
            record["properties"] = {key: value for key, value in record["properties"].items() if key not in gone}
            record["required"] = [key for key in record["required"] if key not in gone]
    return then


def test_no_key_of_a_schema_is_gone():
    """What a schema said is there is there, and holds no more kinds of things than it did."""
    for path in SCHEMAS:
        if path.stem in GONE:
            continue
        then, now = schema_of_then(path), schema(path.stem)
        assert now["$id"] == then["$id"], "a schema of another meaning has another version: keep both"
        before, after = dict(fields_of(then)), dict(fields_of(now))
        if path.stem in ("answer-compare", "answer-explain", "answer-run"):
            # Schemas of 0.1 listed what a search knows with every result; these answers never had it.
            of_search = dict(fields_of(schema_of("search", SearchRecord)))
            before = {place: said for place, said in before.items() if _within_result(place) not in of_search}
        assert before.keys() - after.keys() == set(), "these are gone"
        for place, (kinds, required) in before.items():
            assert after[place][0] <= kinds, place
            assert after[place][1] or not required, f"{place} may be left out now"


def _within_result(place: str) -> str:
    return place.removeprefix(".results[]")


def fields_of(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[set[str], bool]]]:
    """Each field of a schema by its path, with the kinds of values that it may hold and whether it is required."""

    def within(
        holds: dict[str, Any], place: str, above: tuple[str, ...]
    ) -> Iterator[tuple[str, tuple[set[str], bool]]]:
        for each in holds.get("anyOf", ()):
            yield from within(each, place, above)
        name = holds.get("$ref", "").rpartition("/")[2]
        if name and name not in above:
            yield from within(schema["$defs"][name], place, (*above, name))
        for key in ("items", "additionalProperties"):
            if isinstance(holds.get(key), dict):
                yield from within(holds[key], f"{place}[]", above)
        for key, value in holds.get("properties", {}).items():
            yield f"{place}.{key}", (kinds_of(value), key in holds.get("required", ()))
            yield from within(value, f"{place}.{key}", above)

    return within(schema, "", ())


def kinds_of(holds: dict[str, Any]) -> set[str]:
    """The kinds of values that a field may hold."""
    if "anyOf" in holds:
        return set().union(*(kinds_of(each) for each in holds["anyOf"]))
    if "enum" in holds:
        return {type(each).__name__.replace("str", "string").replace("NoneType", "null") for each in holds["enum"]}
    found = "object" if "$ref" in holds else holds.get("type", "anything")
    return {"integer", "number"} if found == "number" else {found}


@pytest.mark.parametrize("name", QUICK)
def test_todays_answers_fit_the_schema_of_then(name, monkeypatch):
    folder = HERE / "0.1"
    monkeypatch.chdir(folder)
    said, command = ANSWERS[name]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        main([*command, "--json"])
    answer = json.loads(out.getvalue())
    for record, closed in (
        (schema_of_then(folder / "schemas" / f"{said}.json"), False),
        (schema(said), True),
    ):
        checked = Draft202012Validator(record if closed else opened(record))
        assert [f"{error.json_path}: {error.message}" for error in checked.iter_errors(answer)] == []


GONE: frozenset[str] = frozenset({
    ".megatron.txt", "CalibrationProfile", "Gpus", "Models", "ScheduleLike", "SearchRecord", "convert", "machines", "read",
    "SteadyStates", "steady_state", "answer-steady-state", "--steady-state", "--most", "--schedule",
    "jitter", "slow_rank", "--jitter", "--slow-rank",
    "--offload", "--offload-times", "--offload-bandwidth", "--offload-bytes", "--costs-name", "--unshard-lookahead",
    "--max-active-stages", "--gradient-bytes", "--parameter-bytes", "--reference-length", "--attention-share",
    "--attention-model", "--slice-attention", "--variant", "--recompute-bytes", "--sharding", "--unshard-times",
    "--reduce-times",  # set in config files, the last ones for searches alone
    "dask", "searches", "rounds", "store", "--dask", "--searches", "--rounds", "--store",
})  # fmt: skip
"""Names, options, schemas and suffixes of earlier versions that were removed on purpose."""


@pytest.fixture(scope="module")
def names() -> Any:
    return in_lists(named())


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_no_name_is_gone(folder, names):
    """Every function, command, option, key, schedule and format of an earlier version is still there."""
    then = json.loads((folder / "named.json").read_text())
    assert [name for name in then["names"] if not hasattr(pipeplan, name) and name not in GONE] == []
    for kind in ("keys", "schedules"):
        assert set(then[kind]) - set(names[kind]) <= GONE, kind
    for module, public in then.get("submodules", {}).items():
        assert set(public) - set(names["submodules"].get(module, ())) <= GONE, module
    for command, options in then["options"].items():
        assert set(options) - set(names["options"].get(command, ())) <= GONE, command
    for name, ending in then["formats"].items():
        assert names["formats"][name] == ending or ending in GONE, name


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_functions_are_called_as_before(folder, names):
    """By place in the same order, by the same names, and without what is new."""
    for function, were in json.loads((folder / "named.json").read_text())["arguments"].items():
        if function not in names["names"]:
            continue  # test_no_name_is_gone reports it
        # The names of settings were listed for whatever takes keywords; ``save`` has none of them.
        gone = {*GONE, *SettingsKeywords.__optional_keys__} if function == "save" else GONE
        then = {argument: said for argument, said in were.items() if argument not in gone}
        now = names["arguments"][function]
        for argument, said in then.items():
            assert now[argument].split()[0] in {said.split()[0], "either"}, f"{function}({argument})"
        placed = [
            [name for name, said in each.items() if not said.startswith("name") and name not in GONE]
            for each in (then, now)
        ]
        assert placed[1][: len(placed[0])] == placed[0], function
        needed = [{name for name, said in each.items() if said.endswith("needed")} for each in (then, now)]
        assert needed[1] <= needed[0], function


@pytest.mark.parametrize("plan", [fitting_plan, missing_plan])
def test_plans_fit_their_schemas(plan):
    answer = in_lists(plan().to_dict())
    for record in (
        schema("answer-plan"),
        opened(json.loads((HERE / "0.1" / "schemas" / "answer-plan.json").read_text())),
    ):
        assert [f"{each.json_path}: {each.message}" for each in Draft202012Validator(record).iter_errors(answer)] == []


@pytest.mark.parametrize("name", ["schedule.json", "timeline.json", "costs.costs.json"])
def test_a_file_of_a_newer_version_is_refused_in_one_sentence(name, tmp_path):
    """Whatever keys it has that are not known here."""
    document = json.loads((HERE / "0.1" / "files" / name).read_text())
    path = tmp_path / name
    for changes in ({"version": 2}, {"version": 2, "colour": "red"}, {"version": 7, "rows": 3, "forward": "1"}):
        path.write_text(json.dumps(document | changes))
        with pytest.raises(
            FormatError, match=rf"unsupported version {changes['version']}: this pipeplan reads version 1; a newer"
        ):
            read_file(path)


def test_a_store_of_another_version_is_refused_in_one_sentence(tmp_path):
    copied = Path(shutil.copy(HERE / "0.1" / "files" / "search.store", tmp_path))
    with pytest.raises(
        InputError, match=r"holds another sweep: pipeplan is .* there and \"9.0\" here.*name another file"
    ):
        Store(copied, '{"pipeplan":"9.0"}')
