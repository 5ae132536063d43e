"""Semantic segmentation: the chapter's tour and its second recipe."""
