"""What the pages of the documentation and README show in blocks of ``console`` is what is printed.

``python -m docs.build.executed --write`` puts into them what is printed now.
"""

import pytest

from docs.build import executed


@pytest.mark.parametrize("page", executed.pages(), ids=lambda page: page.relative_to(executed.ROOT).as_posix())
def test_what_a_page_shows_is_what_is_printed(page):
    _, faults = executed.run(page)
    assert not faults, "\n\n".join(faults)
