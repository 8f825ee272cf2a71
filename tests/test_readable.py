import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.foundation.readable import Times, change, percent, size_text, sizes_text, time_text


def test_times_are_in_the_unit_in_which_they_are_read_best():
    assert time_text(2_019_403, "us") == "2.019 s"
    assert time_text(12.1, "ms") == "12.1 ms"
    assert time_text(0.0004, "s") == "400 us"
    assert time_text(0, "ms") == "0 ms"
    assert time_text(28.2, "") == "28.2"
    assert time_text(123_456, "s") == "123,456 s"
    assert time_text(5, "fortnights") == "5 fortnights"


def test_a_table_has_one_unit_and_one_number_of_decimals():
    times = Times.of([2_019_403, 12_100], "us")
    assert (times.text(2_019_403), times.text(12_100), times.text(0)) == ("2.019 s", "0.012 s", "0.000 s")
    assert Times.of([27, 24, 3], "").text(3) == "3"


@given(st.lists(st.floats(0, 1e9), min_size=1), st.sampled_from(["", "ns", "us", "ms", "s"]))
def test_no_time_is_farther_from_what_is_written_than_its_last_digit(values, unit):
    times = Times.of(values, unit)
    for value in values:
        assert float(times.number(value).replace(",", "")) == pytest.approx(
            value * times.scale, abs=0.51 * 10**-times.decimals
        )


def test_per_cent_has_one_form_and_no_negative_zero():
    assert [percent(share) for share in (0.06, -0.0001, 1, 0.0434)] == ["6.0%", "0.0%", "100.0%", "4.3%"]
    assert [change(share) for share in (0.10638, -0.0426, -0.0002, 0)] == ["+10.6%", "-4.3%", "0.0%", "0.0%"]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.sampled_from(["", "ms"]))
def test_parts_always_add_up(values, unit):
    times = Times.of([sum(values), *values], unit)
    parts = [float(part.replace(",", "")) for part in times.parts(values)]
    assert sum(parts) == pytest.approx(float(times.number(sum(values)).replace(",", "")), abs=1e-6)
    for part, value in zip(parts, values, strict=True):
        assert part == pytest.approx(value * times.scale, abs=1.01 * 10**-times.decimals)


def test_sizes_are_in_the_unit_in_which_they_are_read_best_and_two_never_look_the_same():
    assert [size_text(size) for size in (0, 512, 2**20, 11.5 * 2**30, 3e15)] == [
        "0.0 B", "512.0 B", "1.0 MiB", "11.5 GiB", "2,728.5 TiB"
    ]  # fmt: skip
    assert sizes_text(28 * 2**30, 20 * 2**30) == ("28.0 GiB", "20.0 GiB")
    assert sizes_text(2**30 + 1, 2**30) == ("1,073,741,825 bytes", "1,073,741,824 bytes")


@given(st.floats(0, 1e15))
def test_a_limit_of_the_size_that_is_said_to_be_needed_is_enough(size):
    number, unit = size_text(size, up=True).replace(",", "").split()
    assert float(number) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit) >= size * (1 - 1e-12)
