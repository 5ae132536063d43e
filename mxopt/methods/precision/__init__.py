"""Precision: float32, float16 and automatic mixed precision."""
