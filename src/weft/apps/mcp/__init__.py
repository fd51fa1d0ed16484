"""The MCP server: weft's searches as tools of an assistant."""
