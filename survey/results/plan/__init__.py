"""The plan of a question before anyone answers: its privacy loss, its margins and its charts."""
