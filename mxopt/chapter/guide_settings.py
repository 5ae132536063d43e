"""What the guides' notebooks measure on each tier, as :mod:`mxopt.chapter.settings`."""

from __future__ import annotations

from mxopt import machine

CORES = machine.cpu().physical_cores

# As the source trains: its learning rate is in its notebook, and not in its text.
PRINTED = {
    "optimizer": "adam",
    "learning_rate": 1e-5,
    "weight_decay": 0.005,
    "batch_size": 64,
    "preprocess": "cached",
}
# The environment, one variable more in each arm.
ENVIRONMENT = {
    "threads": {"cpu_threads": CORES},
    "intel-openmp": {"openmp": "intel"},
    "pinned": {"affinity": "compact"},
    "allocator": {"allocator": "keep"},
}
# ``rate`` is the learning rate that is changed alone; ``goal`` the accuracy on the validation split
# that is timed to, fixed before the runs; ``part`` the images of the experiments that measure speed
# only, and ``batches`` those of the experiment with larger batches.
SETTINGS = {
    "accelerate_training": {
        "smoke": {
            "repeats": 2,
            "seeds": 2,
            "checks": 5,
            "training": {"stand_in": True},
            "plan": {**PRINTED, "epochs": 3},
            "rate": 1e-3,
            "rate_epochs": 1,
            "goal": 0.3,
            "part": {"limit": 320},
            "batches": {},
            "batch_goal": 0.3,
            "environment": ENVIRONMENT,
            "long": {},
        },
        "cpu": {
            "repeats": 6,
            "seeds": 3,
            "checks": 10,
            "training": {},
            "plan": {**PRINTED, "epochs": 4},
            "rate": 1e-3,
            "rate_epochs": 1,
            "goal": 0.8,
            "part": {"limit": 9_600},
            "batches": {"limit": 24_000},
            "batch_goal": 0.8,
            "environment": ENVIRONMENT,
            "long": {"as_printed": {"epochs": 10}, "ablation": ENVIRONMENT},
        },
        "gpu": {
            "repeats": 6,
            "seeds": 3,
            "checks": 10,
            "training": {},
            "plan": {**PRINTED, "epochs": 4},
            "rate": 1e-3,
            "rate_epochs": 1,
            "goal": 0.8,
            "part": {},
            "batches": {},
            "batch_goal": 0.8,
            "environment": {"threads": {"cpu_threads": CORES}},
            "long": {"as_printed": {"epochs": 10}},
        },
    },
}

# What the guides read on each tier, as ``settings.NEEDS`` for the chapter.
NEEDS = {"smoke": (), "cpu": ("fashion-mnist",), "gpu": ("fashion-mnist",)}

# The pairs that the README shows, named before anything is measured.
HEADLINES = {
    "garments-rate": [["printed", "rate"]],
    "garments-speed": [["batch-64", "no-bias"], ["batch-64", "batch-256"]],
    "garments-environment": [["before", "allocator"]],
}

# Seconds and accuracies that "Accelerate Model Training with PyTorch 2.X", chapter 2, prints.
PRINTED_FIGURES = {
    "baseline": (148, 83.99),
    "bias off": (125, 83.76),
    "bias off, batch 128": (96, 82.14),
    "bias off, batch 256": (76, 80.01),
    "Intel OpenMP, 16 threads, pinned": (106, 83.25),
}
