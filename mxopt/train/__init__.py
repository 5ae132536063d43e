"""The training loop, one for every recipe and every plan."""
