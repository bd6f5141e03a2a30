"""What researchers write and respondents receive."""
