"""A function for each construct: all take the same numbers and rows, which are not empty."""

# What is unusual is allowed as well.
# ruff: noqa: B002, B007, PLW2901, RUF021
# mypy: disable-error-code="no-any-return"

from pipeplan.model import Bools, Floats, Ints, Ints32
from tests.foundation.kernels.constructs import numbers_kernel as numbers
from tests.foundation.kernels.constructs import records
from tests.foundation.kernels.constructs.numbers_kernel import count_up, divided, inner_of, row_of, twice
from tests.foundation.kernels.constructs.records import (
    ALWAYS,
    BELOW,
    FIRST,
    LARGEST,
    RATE,
    SECOND,
    THIRD,
    Changes,
    Rows,
)

HERE = 5


def floor_division(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    ints[0] = n // rows.number if rows.number != 0 else 0
    n //= 3
    return n // -4 + (n + 1) // 7


def remainder(n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools) -> int:
    ints[0] = n % rows.number if rows.number != 0 else 0
    n %= 5
    return (n - 9) % 7 + n % -3 + flag % 2


def true_division(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    floats[0] = n / 7
    quotient: float = n
    quotient /= 2
    return quotient / 3 - -n / 8 + (x / rows.share if rows.share != 0 else 0)


def chained_comparison(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> bool:
    flags[0] = 0 <= n < rows.number != 3
    return n < x <= rows.share or n == rows.number == 2 or x > n >= -3


def smallest_and_largest(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[0] = min(n, rows.number, 3) - max(n, -rows.number, flag)
    # Of a zero and a negative zero, the first one counts.
    floats[0] = min(x, rows.share)
    floats[-1 + len(floats)] = max(0.0, -0.0, x)
    return max(x, n, rows.share) + min(-0.0, 0.0, x)


def absolute_values(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[0] = abs(n) + abs(flag)
    return abs(x) - abs(rows.share)


def conversions(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[0] = int(x) + int(-x / 3) + int(x > n)
    flags[0] = bool(n) and not bool(x)
    return float(n) / 3 + float(flag)


def negation(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[0] = n - -n - -(-3) + -flag
    return -x - -(x + 1)


def conditions(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> bool:
    if n > 3 and (flag or x < 0) and not n == 5:
        ints[0] = 1
    elif n > 2 or rows.is_open:
        ints[0] = 2
    else:
        ints[0] = 3
    if flag == (x > 1):
        pass
    elif flag != rows.is_open:
        return not flag
    return ALWAYS and (n > 0 or not (flag and rows.is_open))


def conditional_expressions(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[0] = 1 if n > 3 else 2 if n > 1 else 3
    row = ints if flag else rows.ints
    mixed = n if flag else x
    inner = rows.inner if flag else inner_of(rows)
    return mixed + row[0] + (rows.inner if flag else inner).step


def loops_over_ranges(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    total = 0
    for first in range(n):
        total += first
    for second in range(n, rows.number):
        total = (3 * total + second) % LARGEST
    for third in range(rows.number, n, -2):
        total = (5 * total - third) % LARGEST
    for fourth in range(-3, 20, 1 + abs(n)):
        # Changing the variable changes no later turn.
        fourth *= 2
        total += fourth
    last = -1
    for last in range(n):
        n -= 1
    return (total + last) % LARGEST


def loops_over_rows(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    total = 0.0
    for value in rows.floats:
        total += value
    for number in small:
        total -= number
    open_rows = 0
    for is_open in flags:
        open_rows += is_open
    row = ints
    for item in row:
        # The loop goes on along the row that it began with.
        row = rows.inner.ints
        total += item
        ints[len(ints) - 1] = 4
    return total + open_rows + row[0]


def while_break_and_continue(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    total = 0
    while True:
        n += 1
        if n % 3 == 0:
            continue
        total += n
        for place in range(len(ints)):
            if ints[place] < 0:
                break
            if place == 2:
                continue
            total += ints[place]
        if n > 60:
            break
    while total > 1000 and not flag:
        total //= 2
    return total


def infinite_loop_with_result(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    while True:
        if n > 5:
            return n
        n += 2


def early_returns(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> None:
    for place in range(len(ints)):
        if ints[place] == n:
            return
        ints[place] += 1


def tuples(n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools) -> int:
    quotient, rest = divided(n, 4)
    both = divided(quotient, -3)
    first, second = both
    first, second = second, first
    place = len(ints) - 1
    ints[0], ints[place], place = ints[place], ints[0], 0
    place, ints[place] = len(ints) - 1, rest
    row, other = ints, rows.ints
    row, other = other, row
    return quotient + 10 * first + 100 * second + 1000 * place + row[0] + other[0]


def several_targets(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    first = second = floats[0] = count_up(ints)
    second += 1
    return first + second


def augmented_assignments(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[n % len(ints)] += 3
    ints[ints[0] % len(ints)] -= n
    floats[0] *= 2
    floats[0] /= 3
    floats[0] += n
    small[0] //= -2
    small[0] %= 7
    x -= n
    n += flag
    return n * x


def writing_before_the_place_is_looked_up(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> None:
    ints[0] %= len(floats)
    floats[ints[0] % len(floats)] = count_up(ints)


def values_of_a_tuple_in_order(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    first, second, third = ints[0], count_up(ints), count_up(ints)
    return first + 3 * second + 5 * third


def flags_as_numbers(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    flags[0] = n > 2
    flags[len(flags) - 1] = flags[0] and rows.is_open
    ints[0] = flags[0] + rows.is_open + (n > 1) + (x > 1)
    floats[0] = flags[0]
    return x * flags[len(flags) - 1] + flag


def narrow_ints(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    factor = 2_000_000_000
    small[0] = factor + n
    ints[0] = small[0] * small[0] + small[0]
    return -small[0] * small[0] + max(small[0], small[len(small) - 1]) + abs(small[0]) * small[0]


def wide_ints(n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools) -> int:
    ints[0] = LARGEST * n
    return ints[0] + LARGEST // (1 + abs(n))


def constants(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    ints[0] = 100 * FIRST + 10 * SECOND + THIRD + HERE + records.LARGEST - -records.THIRD
    flags[0] = ALWAYS and records.ALWAYS
    return BELOW * RATE + records.RATE * -BELOW + 1e-300 * x + 2.5e22


def records_in_records(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    inner = rows.inner
    again = inner_of(rows)
    row = row_of(rows, flag)
    total = rows.inner.ints[0] + inner.ints[len(inner.ints) - 1] + again.step + inner_of(rows).step + row[0]
    return total * rows.share + rows.inner.double[0] + len(rows.inner.ints)


def calls(n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools) -> int:
    count_up(ints)
    numbers.count_up(ints)
    return twice(twice(n) + numbers.twice(row_of(rows, n > 2)[0])) + halved_while_even(n) + with_other_record(rows)


def halved_while_even(value: int) -> int:
    while value % 2 == 0 and value != 0:
        value //= 2
    return value


def with_other_record(rows: Rows) -> int:
    inner = rows.inner
    total = 0
    for _ in range(2):
        total += inner.ints[0]
        inner = inner_of(rows)
    return total


def replaced_parameters(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    if flag:
        ints = rows.ints
    return ints[0] + first_of_the_second(rows, rows)


def first_of_the_second(rows: Rows, others: Rows) -> int:
    before = rows.ints[0]
    rows = others
    return before + rows.ints[0]


def int_and_later_float(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> float:
    total = 0
    for place in range(len(floats)):
        total += floats[place]
    more: float = 1
    if flag:
        more = x
    return total * more


def order_of_evaluation(
    n: int, x: float, flag: bool, rows: Rows, ints: Ints, floats: Floats, small: Ints32, flags: Bools
) -> int:
    # "and" and "or" call what writes only if it matters.
    if n > 0 and count_up(ints) > 3 or flag and count_up(ints) > 1:
        return ints[0]
    return count_up(ints) if flag else n


def functions_of_a_row(changes: Changes, ints: Ints) -> int:
    total = 0
    for place in range(len(changes.functions)):
        total = 10 * total + changes.functions[place](place, ints)
    return total
