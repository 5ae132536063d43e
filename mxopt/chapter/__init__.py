"""Code of chapter 8's notebooks: tiers, settings, workloads, errata."""
