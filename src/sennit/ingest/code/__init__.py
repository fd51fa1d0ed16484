"""Parsing code into entities: what a file defines, where, and what it uses."""
