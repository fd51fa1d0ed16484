"""The MCP server: sennit's searches as tools of an assistant."""
