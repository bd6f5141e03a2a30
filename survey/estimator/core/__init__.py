"""What all estimators share: arguments, results, intervals, likelihoods, pseudo-values."""
