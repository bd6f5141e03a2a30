"""`survey audit`: hold the shipped client against the integers it promises to run."""
