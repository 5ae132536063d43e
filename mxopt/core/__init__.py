"""Errors, plans, run records and recipes: what all other packages build on."""
