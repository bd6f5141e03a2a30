"""Cross-tabulation of two questions: joint shares and a test of independence."""
