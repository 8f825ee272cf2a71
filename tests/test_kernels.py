"""Kernels: one source, two ways to run it."""

from types import FunctionType

import numpy as np

from pipeplan.kernels import Kernel, compile_loop


def twice(value: int) -> int:
    return 2 * value


def thrice(value: int) -> int:
    return 3 * value


def fill(count, numbers):
    for index in range(count):
        numbers[index] = twice(index)


def test_on_lists_and_compiled_it_gives_the_same():
    kernel = Kernel(fill, compile_after=10)
    for _ in range(2):
        numbers = np.zeros(5, np.int64)
        kernel((5,), (numbers,), work=5)
        assert numbers.tolist() == [0, 2, 4, 6, 8]
    assert kernel.evaluations == 10


def test_what_is_cached_under_a_name_is_no_longer_used_when_something_that_it_calls_has_changed():
    changed = FunctionType(fill.__code__, fill.__globals__ | {"twice": thrice}, "fill")
    names = [vars(compile_loop(function))["__qualname__"] for function in (fill, changed)]
    assert names[0] != names[1]
    assert all(name.startswith("fill-") for name in names)
    numbers = np.zeros(3, np.int64)
    compile_loop(changed)(3, numbers)
    assert numbers.tolist() == [0, 3, 6]
