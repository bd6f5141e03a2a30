"""Short runs of benchmarks, which only show that a benchmark works."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch


def benchmark_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that all benchmarks have in common."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--short", action="store_true", help="take little, to show that the benchmark runs"
    )
    return parser


@contextmanager
def reduced(module: str, constants: Mapping[str, object], is_short: bool) -> Iterator[None]:
    """Replace constants of a module in a short run."""
    if not is_short:
        yield
        return
    with patch.multiple(sys.modules[module], **constants):
        yield


def require_range(label: str, figure: float, low: float, high: float) -> None:
    """Raise RuntimeError if a figure is not a number from low to high."""
    if not low <= figure <= high:
        raise RuntimeError(f"{label}: {figure:g} is not between {low:g} and {high:g}")
