"""Tests of `sennit install`."""
