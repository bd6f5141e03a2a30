"""Planning a survey: sample size, power, and the cost of privacy."""
