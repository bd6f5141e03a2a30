"""`python -m survey.cli`, the same as `survey`."""

from survey.cli import main

main()
