"""From the wire to the store: every refusal named, nothing kept beyond the report."""
