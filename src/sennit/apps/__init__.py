"""What serves people and programs: the command line, and whatever comes to stand beside it."""
