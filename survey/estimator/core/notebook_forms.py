"""Forms of results for notebooks: DataFrame, Arrow table, Altair chart and HTML table.

pandas, pyarrow and Altair belong to the extra `notebook` and are imported on first use.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from survey.errors import require_extra

if TYPE_CHECKING:
    import altair
    import pandas as pd
    import pyarrow as pa

NOTEBOOK = "notebook"
"""The extra that installs the libraries of this module."""

HTML_ROWS = 200
"""Maximum number of rows of an HTML table: a notebook stores all of them."""

CHART_WIDTH = 420
"""Width of a chart's scale in pixels."""

NUMBERS = ("estimate", "conf_low", "conf_high")
"""The columns that a chart draws."""

Rows = Sequence[Mapping[str, Any]]


def data_frame(rows: Rows, index: Sequence[str], head: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows as a DataFrame whose index are the columns `index`; `attrs` are the head."""
    with require_extra(NOTEBOOK):
        import pandas as pd
    frame = pd.DataFrame([*rows])
    if index:
        frame = frame.set_index([*index])
    frame.attrs = dict(head)
    return frame


def arrow_table(rows: Rows, head: Mapping[str, Any]) -> pa.Table:
    """Return rows as a pyarrow Table; each number and text of the head is metadata, as JSON."""
    with require_extra(NOTEBOOK):
        import pyarrow as pa
    metadata = {name: json.dumps(value, ensure_ascii=False) for name, value in head.items()}
    return pa.Table.from_pylist([*rows]).replace_schema_metadata(metadata)


def interval_chart(
    rows: Rows, names: Sequence[str], title: str, limits: tuple[float, float] | None = None
) -> altair.LayerChart | altair.FacetChart:
    """Return points with intervals, one line per row, and a line at 0 if the scale includes it.

    `rows` have the labels `names`, then estimate, conf_low and conf_high. `limits` are the ends of
    the scale; without them it includes 0. The first of two names divides the chart into panels.
    """
    with require_extra(NOTEBOOK):
        import altair as alt
    scale = alt.Scale(zero=True) if limits is None else alt.Scale(domain=[*limits], nice=False)
    # The columns have fixed names: a dot or bracket in a name would mean a path in Vega-Lite.
    values = [_mark(row, names) for row in rows]
    y = alt.Y("label:N", sort=None, title=names[0] if len(names) == 1 else None)
    x = alt.X("conf_low:Q", scale=scale, title="estimate and interval")
    tooltip = [f"{name}:{'Q' if name in NUMBERS else 'N'}" for name in values[0]]
    base = alt.Chart(width=CHART_WIDTH).encode(y=y, tooltip=tooltip)
    layers = [
        base.mark_rule(strokeWidth=2).encode(x=x, x2="conf_high"),
        base.mark_point(filled=True, opacity=1, size=60).encode(x=alt.X("estimate:Q", scale=scale)),
    ]
    if limits is None or limits[0] <= 0 <= limits[1]:
        zero = alt.Chart().mark_rule(color="#595959", strokeDash=[4, 3])
        layers.append(zero.encode(x=alt.datum(0, type="quantitative", scale=scale)))
    # Vega-Lite lists marks in the order of the rows, so that the options keep their order.
    chart = alt.layer(*layers, data=alt.Data(values=values))
    if len(names) < 2:
        return chart.properties(title=title)
    panels = alt.Row("panel:N", sort=None, title=" × ".join(names))
    return chart.facet(row=panels).properties(title=title)


def _mark(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    labels = [str(row[name]) for name in names] or [""]
    numbers = {name: row[name] for name in NUMBERS}
    panel = {"panel": labels[0]} if len(labels) > 1 else {}
    return {**panel, "label": labels[-1], **numbers}


class HtmlTable(NamedTuple):
    """A table for notebooks: the first `headers` cells of a row are its header cells."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    headers: int

    def text(self) -> str:
        """Return the HTML, with every text escaped; at most `HTML_ROWS` rows."""
        columns = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.columns)
        rows = "".join(map(self._row, self.rows[:HTML_ROWS]))
        hidden = len(self.rows) - HTML_ROWS
        note = f"<p>... and {hidden:,} more rows</p>" if hidden > 0 else ""
        return (
            f"<table><caption>{html.escape(self.caption)}</caption>"
            f"<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>{note}"
        )

    def _row(self, row: Sequence[str]) -> str:
        cells = [html.escape(cell) for cell in row]
        head = "".join(f'<th scope="row">{cell}</th>' for cell in cells[: self.headers])
        return f"<tr>{head}{''.join(f'<td>{cell}</td>' for cell in cells[self.headers :])}</tr>"
