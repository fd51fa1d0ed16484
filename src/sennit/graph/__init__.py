"""The knowledge graph as pure values and functions: names, mentions in texts, and walks along facts."""
