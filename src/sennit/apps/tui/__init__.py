"""The terminal interface: search, read and explain with the keyboard."""
