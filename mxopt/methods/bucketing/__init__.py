"""Bucketing: sentences of similar length share a batch."""
