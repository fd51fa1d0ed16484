"""Evaluation: collections with judgements in, figures of quality and time out."""
