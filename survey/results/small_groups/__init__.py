"""Model-based shares of groups beside their direct ones: of collection links and periods."""
