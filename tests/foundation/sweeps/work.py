"""What the sweeps of these tests do; imported by their workers."""

import os
import signal
import time
from dataclasses import dataclass

from pipeplan.foundation.errors import InfeasibleError


@dataclass(frozen=True, slots=True)
class Square:
    number: int
    square: float
    divisors: tuple[int, ...] = ()


def square(number: int) -> Square:
    divisors = tuple(entry for entry in range(1, number + 1) if number % entry == 0)
    return Square(number, float(number * number), divisors)


def even_only(number: int) -> int:
    """Refuses odd numbers, and breaks at 4."""
    if number % 2:
        raise InfeasibleError(f"{number} is odd")
    if number == 4:
        raise ZeroDivisionError("four")
    return number


def slow_process_of(number: int) -> list[int]:
    time.sleep(0.03)
    return [number, os.getpid()]


def infinite(number: int) -> dict[str, float]:
    return {"time": number * float("inf")}


def nap_and_note(log: str, milliseconds: int) -> int:
    """Writes a line a call, whole even when many processes write."""
    time.sleep(milliseconds / 1000)
    note(log, str(os.getpid()))
    return milliseconds


def note(log: str, line: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def count(log: str, task: tuple[int, int]) -> int:
    """Takes (number, milliseconds); writes the number when it begins."""
    number, milliseconds = task
    note(log, str(number))
    time.sleep(milliseconds / 1000)
    return number


def die_at(numbers: tuple[int, ...], number: int) -> int:
    if number in numbers:
        time.sleep(1)  # the results of earlier tasks are on their way
        os.kill(os.getpid(), signal.SIGKILL)
    return number
