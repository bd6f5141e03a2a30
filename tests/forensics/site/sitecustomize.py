"""Break the program in every process that starts with this folder on its path."""

import os

if mutant := os.environ.get("SURVEY_TEST_MUTANT"):
    from tests.forensics.mutants import MUTANTS

    MUTANTS[mutant](setattr)
