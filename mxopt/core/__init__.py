"""Errors, the plan of a run, its record, and what a recipe is: everything else builds on these."""
