"""How far an estimate can be trusted: fit, fabricated reports, precision."""
