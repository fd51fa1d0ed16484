"""The graph as pure values and functions: what a name is, what a text mentions, how facts are walked."""
