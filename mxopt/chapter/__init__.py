"""What the notebooks of chapter 8 need: tiers, settings, workloads."""
