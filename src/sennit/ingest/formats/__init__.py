"""Formats besides plain text: each becomes Markdown with a unit for every line, rows, messages or turns."""
