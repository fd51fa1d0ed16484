"""Tests of the tools that a model calls."""
