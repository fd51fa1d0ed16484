"""Puts sennit into the configuration of coding agents and editors, and takes it out again."""
