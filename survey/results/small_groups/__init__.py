"""Model-based shares of collection links and periods, beside their direct shares."""
