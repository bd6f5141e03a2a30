"""`survey audit`: check that the shipped client runs exactly the integers it promises."""
