"""Model-based shares of small groups, which borrow strength from each other."""
