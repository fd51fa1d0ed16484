"""The terminal interface: search, read and explain without leaving the keyboard."""
