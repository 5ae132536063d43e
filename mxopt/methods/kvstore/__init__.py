"""Data parallelism over several processes."""
