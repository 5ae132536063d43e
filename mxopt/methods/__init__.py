"""One folder for each technique: its card (README.md) and its code."""
