"""Run `python -m survey.cli`, which is the same as `survey`."""

from survey.cli import main

main()
