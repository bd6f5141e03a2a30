"""Sentences about changes of a question between versions."""

from __future__ import annotations

from survey.questionnaire.kinds import PublishedQuestion


def describe_changes(old: PublishedQuestion, new: PublishedQuestion, version: int) -> list[str]:
    """Return sentences about what `version` changed in a question."""
    sentences = []
    if old.channel.to_json() != new.channel.to_json():
        sentences.append(
            f"Version {version} randomizes differently (epsilon {new.channel.epsilon:.3g} instead "
            f"of {old.channel.epsilon:.3g}): estimates are comparable, shares of reports are not, "
            "and people may answer differently."
        )
    if old.text != new.text:
        sentences.append(
            f"Version {version} has a different text: “{new.text}” instead of “{old.text}”."
        )
    old_labels, new_labels = ([option.label for option in q.options] for q in (old, new))
    if old_labels != new_labels:
        sentences.append(f"Version {version} has different texts for the answers.")
    return sentences
