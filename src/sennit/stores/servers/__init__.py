"""Indexes on servers, one package or module per kind of server."""
