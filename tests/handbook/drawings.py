"""Draw the pictures of the explanation "How randomized answers work", from the real mechanism.

`python -m tests.handbook.write` writes them. Their colors follow the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from survey.estimator import proportions
from survey.mechanism import SubsetSelection, grr

STYLE = """
svg { font: 15px system-ui, "DejaVu Sans", sans-serif; }
text { fill: #1d2327; } .quiet { fill: #4a555c; }
.yes { fill: #0a5069; } .no { fill: #b3c3cb; } .rule { stroke: #4a555c; fill: none; }
.changed { stroke: #a11212; stroke-width: 2.5; fill: none; }
.span { stroke: #d9a514; stroke-width: 4; }
@media (prefers-color-scheme: dark) {
  text { fill: #eef2f4; } .quiet { fill: #b4c0c7; }
  .yes { fill: #7cc7e6; } .no { fill: #43545e; } .rule { stroke: #b4c0c7; }
  .changed { stroke: #ffb0a8; }
}
"""

WIDTH = 420
"""Width of a picture in pixels: on a phone, its texts must still be readable."""

PEOPLE = 12
N = 2_000
TRUE_SHARE = 0.3
SEED = 5


def channel() -> SubsetSelection:
    """Return the mechanism of all pictures: yes or no, reported truthfully with 3/4."""
    return grr(2, "3/4")


def svg(height: int, title: str, parts: Sequence[str]) -> str:
    """Return a picture with a title for people who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<title>{title}</title><style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, *, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{mark}>{words}</text>'


def bar(y: int, width: float, height: int, kind: str) -> str:
    return f'<rect x="0" y="{y}" width="{width:.0f}" height="{height}" class="{kind}"/>'


def reports() -> str:
    """Draw the true answers of some people, and the reports that their devices send."""
    rng = np.random.default_rng(SEED)
    truths = np.repeat([0, 1], [PEOPLE * 3 // 10, PEOPLE - PEOPLE * 3 // 10])
    codes = channel().perturb(truths, rng)
    parts = [text(0, 18, "True answers, only on the devices")]
    for place, (truth, code) in enumerate(zip(truths, codes, strict=True)):
        x = 17 + place * (WIDTH - 34) / (PEOPLE - 1)
        for y, answer in ((46, truth), (128, code)):
            parts.append(f'<circle cx="{x:g}" cy="{y}" r="12" class="{("yes", "no")[answer]}"/>')
        parts.append(f'<path d="M{x:g} 64V106" class="rule"/>')
        if truth != code:
            parts.append(f'<circle cx="{x:g}" cy="128" r="15.5" class="changed"/>')
    n_changed = int(np.sum(truths != codes))
    parts += [
        text(0, 168, "Reports that the devices send"),
        text(0, 194, f"Dark: yes. Light: no. Ringed: {n_changed} untrue reports.", kind="quiet"),
    ]
    return svg(202, "Each device reports the true answer or the other one", parts)


def one_report() -> str:
    """Draw how sure a report "yes" can make its reader, for three earlier guesses."""
    p = float(channel().p)
    parts = [text(0, 18, "How sure somebody is of “yes”")]
    for row, prior in enumerate((0.1, 0.3, 0.5)):
        # Bayes: P(yes | report yes) = prior p / (prior p + (1 - prior)(1 - p))
        posterior = prior * p / (prior * p + (1 - prior) * (1 - p))
        y = 36 + row * 62
        for offset, kind, share, words in (
            (0, "no", prior, f"{prior:.0%} before"),
            (24, "yes", posterior, f"{posterior:.0%} after a report “yes”"),
        ):
            parts.append(bar(y + offset, share * 300, 18, kind))
            parts.append(text(share * 300 + 8, y + offset + 14, words))
    return svg(214, "One report changes a guess only a little", parts)


def estimate() -> str:
    """Draw the reports of 2,000 people and the estimate that removes the randomization."""
    rng = np.random.default_rng(SEED)
    truths = (rng.random(N) >= TRUE_SHARE).astype(np.int64)
    counts = np.bincount(channel().perturb(truths, rng), minlength=2)
    result = proportions(counts, channel())
    low, high = float(result.conf_low[0]), float(result.conf_high[0])
    rows = (
        ("no", TRUE_SHARE, "true share, which nobody knows"),
        ("no", counts[0] / N, "of the reports"),
        ("yes", float(result.estimate[0]), f"estimate, {low:.0%} to {high:.0%}"),
    )
    parts = [text(0, 18, f"Share of “yes” among {N:,} people")]
    for row, (kind, share, words) in enumerate(rows):
        y = 36 + row * 56
        parts.append(bar(y, share * WIDTH, 18, kind))
        parts.append(text(0, y + 38, f"{share:.0%} {words}"))
    y = 36 + 2 * 56 + 9
    parts.append(f'<path d="M{low * WIDTH:.0f} {y}H{high * WIDTH:.0f}" class="span"/>')
    return svg(206, "The estimate removes the effect of the randomization", parts)


DRAWINGS: Mapping[str, str] = {
    "reports.svg": reports(),
    "one-report.svg": one_report(),
    "estimate.svg": estimate(),
}
