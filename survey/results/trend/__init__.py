"""One question over several groups: collection links, periods, or versions."""
