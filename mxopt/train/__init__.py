"""The training loop, the same for all recipes and plans."""
