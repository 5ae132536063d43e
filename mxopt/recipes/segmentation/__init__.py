"""Semantic segmentation: the tour and the second recipe of the chapter."""
