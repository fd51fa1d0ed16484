"""Evaluation: retrieval metrics and search times on collections with relevance judgements."""
