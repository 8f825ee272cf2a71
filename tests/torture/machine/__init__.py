"""What the suites of the machine share: errands, what is done to them, and what is looked at after."""
