"""Data parallelism over the devices of one process."""
