"""The MCP server: sennit's searches as tools for an assistant."""
