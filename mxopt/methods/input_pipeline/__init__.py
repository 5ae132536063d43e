"""The input pipeline: where samples are transformed, and where the result is kept."""
