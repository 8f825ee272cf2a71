import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.costs.config import load_config, settings_given
from pipeplan.foundation.errors import CostError, FormatError, ShapeError, UnknownNameError


def load(tmp_path, text: str | bytes, ending: str = "yaml"):
    path = tmp_path / f"config.{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path)


THE_SAME = {
    "yaml": "ranks: 4\nforward_times: [1, 2.5, 1, 1]\nactivation_bytes: 1GB\nmemory_limit: 12GiB\n",
    "toml": 'ranks = 4\nforward_times = [1, 2.5, 1, 1]\nactivation_bytes = 1e9\nmemory_limit = "12GiB"\n',
    "json": '{"ranks": 4, "forward_times": [1, 2.5, 1, 1], "activation_bytes": 1e9, "memory_limit": "12GiB"}',
}


@pytest.mark.parametrize("ending", THE_SAME)
def test_three_languages_say_the_same(tmp_path, ending):
    assert load(tmp_path, THE_SAME[ending], ending).settings == {
        "ranks": 4,
        "forward_times": (1.0, 2.5, 1.0, 1.0),
        "activation_bytes": 1e9,
        "memory_limit": "12GiB",
    }


def test_a_file_of_the_first_simulator(tmp_path):
    config = load(
        tmp_path,
        "num_stages: 6\nnum_batches: 12\nforward_times: [0.8, 1.0, 1.2, 1.0, 0.9, 1.1]\n"
        "backward_times: [1.6, 2.0, 2.4, 2.0, 1.8, 2.2]\np2p_time: 0.05\noutput_file: picture.png\n",
    )
    assert config.settings["stages"] == 6
    assert config.settings["microbatches"] == 12
    assert config.settings["p2p_time"] == 0.05
    assert config.output == ("picture.png",)


def test_keys_that_are_no_settings(tmp_path):
    config = load(tmp_path, "schedule: zbv\noutput: [a.png, b.svg]\nno_visualization: true\nnum-devices: 2\nchunks:\n")
    assert (config.schedule, config.output, config.no_visualization) == ("zbv", ("a.png", "b.svg"), True)
    assert config.settings == {"ranks": 2}


@pytest.mark.parametrize(
    ("text", "ending", "error", "message"),
    [
        ("forwad_times: 1", "yaml", UnknownNameError, "did you mean 'forward_times'"),
        ("ranks: 4.5", "yaml", CostError, "ranks: expected a whole number, got a fraction"),
        ("ranks: true", "yaml", CostError, "ranks: expected a whole number, got true or false"),
        ("ranks: {a: 1}", "yaml", CostError, "got a group of keys"),
        ("times_per: chunk", "yaml", UnknownNameError, "times_per .*'chunk'"),
        ("communication: [edge]", "yaml", CostError, "communication: expected text, got a list"),
        ("communication: fast", "yaml", UnknownNameError, "known: blocking, contended, edge"),
        ("no_visualization: 3", "yaml", CostError, "no_visualization: expected true or false"),
        ("ranks: 4\nnum_devices: 5", "yaml", CostError, "ranks is set twice, the second time as 'num_devices'"),
        ('{"ranks": 4, "ranks": 5}', "json", FormatError, "duplicate key 'ranks'"),
        ("ranks = 4\nranks = 5", "toml", FormatError, "line 2, at its end: duplicate key; keep one"),
        ('{"p2p_time": NaN}', "json", FormatError, "NaN is not a valid JSON number"),
        ("ranks = ", "toml", FormatError, "invalid config file"),
        (b"\x80\x81", "yaml", FormatError, "not text"),
        ("ranks: 4", "ini", UnknownNameError, "suffix of a config file"),
        ("[" * 50_000 + "]" * 50_000, "json", FormatError, "nested too deeply"),
        ("ranks: " + "1" * 5000, "yaml", FormatError, "invalid config file"),
        ("ranks: 0x" + "f" * 9999, "yaml", ShapeError, r"ranks must be at most 65,536, not about 10\^"),
        ("chunks = 0x" + "f" * 9999, "toml", ShapeError, r"chunks must be at most 20,000,000, not about 10\^"),
        ('{"ranks": ' + "9" * 5000 + "}", "json", FormatError, "value has 5000 digits$"),
    ],
)
def test_slips_are_errors(tmp_path, text, ending, error, message):
    with pytest.raises(error, match=message):
        load(tmp_path, text, ending)


def test_a_bad_number_is_found_where_it_is_read(tmp_path):
    with pytest.raises(
        CostError, match=r"config\.yaml: forward time must be more than 0 and finite, not nan"
    ) as caught:
        load(tmp_path, "forward_times: .nan")
    assert caught.value.field == "forward_times"


def test_keyword_arguments_may_be_arrays_and_lists():
    settings = settings_given({"ranks": np.int64(2), "forward_times": np.array([1.0, 2.0]), "static_bytes": [1, 2]})
    assert settings == {"ranks": 2, "forward_times": (1.0, 2.0), "static_bytes": (1.0, 2.0)}


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("ranks: 4.0\nmicrobatches: 8", "yaml"),
        ('{"ranks": 4.0, "microbatches": 8e0}', "json"),
        ("ranks = 4.0\nmicrobatches = 8", "toml"),
    ],
)
def test_a_count_of_a_file_is_whole_however_it_is_written(tmp_path, text, ending):
    settings = load(tmp_path, text, ending).settings
    assert settings == {"ranks": 4, "microbatches": 8}
    assert all(type(value) is int for value in settings.values())


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"forward_times": {1, 2}}, CostError, r"forward_times: a set has no order; pass a list, not \{1, 2\}"),
        ({"rank": 2}, UnknownNameError, "did you mean 'ranks'"),
        ({"ranks": "2"}, CostError, "ranks: expected a number, not the text '2': write it without quotes"),
    ],
)
def test_keyword_arguments_are_checked(keywords, error, message):
    with pytest.raises(error, match=message):
        settings_given(keywords)


positive = st.floats(1e-6, 1e12)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "ranks": st.integers(1, 2**16),
            "forward_times": positive | st.lists(positive, min_size=1, max_size=5).map(tuple),
            "pad_times": st.booleans(),
            "memory_limit": st.sampled_from(["8act", "12GiB"]) | positive,
            "time_unit": st.sampled_from(["us", ""]),
        },
    ).filter(bool)
)
def test_json_is_read_as_it_was_written(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("configs") / "config.json"
    path.write_text(json.dumps(values))
    assert load_config(path).settings == values
