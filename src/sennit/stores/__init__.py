"""Stores: what keeps records and answers the sources."""
