"""Tables of inputs in one test: the test runs for every row, and a failure names its row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each_case(
    names: str | tuple[str, ...], rows: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for each row of a table; other arguments remain fixtures.

    `names` is one argument name with single values as rows, or a tuple of names with tuples as
    rows. Unlike `pytest.mark.parametrize`, the table is one test. Use it for tests that change
    none of their fixtures. Decorators can be stacked to combine two tables.
    """
    table = list(rows)
    assert table, "a table without rows tests nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_all(**fixtures: Any) -> None:
            for row in table:
                values = (
                    {names: row} if isinstance(names, str) else dict(zip(names, row, strict=True))
                )
                try:
                    test(**fixtures, **values)
                except BaseException as error:
                    error.add_note(f"in the case {str(values)[:500]}")
                    raise

        signature = inspect.signature(test)
        arguments = [p for name, p in signature.parameters.items() if name not in names_of(names)]
        run_all.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
        return run_all

    return decorate


def names_of(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one name or several names as a tuple."""
    return (names,) if isinstance(names, str) else names
