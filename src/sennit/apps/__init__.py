"""The interfaces to sennit: command line, terminal UI, HTTP service and MCP server."""
