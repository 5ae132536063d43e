"""What the guides' notebooks measure on each tier, as :mod:`mxopt.chapter.settings.chapter`."""

from __future__ import annotations

from mxopt import machine

CORES = machine.cpu().physical_cores

# As the source trains: its learning rate is in its notebook, and not in its text.
PRINTED = {
    "optimizer": "adam",
    "beta2": 0.999,
    "learning_rate": 1e-5,
    "weight_decay": 0.005,
    "batch_size": 64,
    "preprocess": "cached",
    "transform_batch": 1_000,
}
# The environment, one variable more in each arm; the last three are the source's.
ENVIRONMENT = {
    "threads": {"cpu_threads": CORES},
    "allocator": {"allocator": "keep"},
    "intel-openmp": {"openmp": "intel"},
    "block-time": {"blocktime": 0},
    "pinned": {"affinity": "compact"},
}
# The same as levers that can be added in any order: block time is a setting of Intel's runtime.
ALONE = {
    "threads": ENVIRONMENT["threads"],
    "allocator": ENVIRONMENT["allocator"],
    "openmp": {**ENVIRONMENT["intel-openmp"], **ENVIRONMENT["block-time"]},
    "pinned": ENVIRONMENT["pinned"],
}
# What manages memory, each with one thread for each core.
ALLOCATORS = {
    "jemalloc": {"allocator": "jemalloc"},
    "tcmalloc": {"allocator": "tcmalloc"},
    "huge-pages": {"pages": "huge"},
}
# In ``accelerate_training``, ``rate`` is the learning rate that is changed alone; ``goal`` the
# accuracy on the validation split that is timed to, fixed before the runs; ``part`` and
# ``environment_part`` the images of experiments that measure speed only, and ``batches`` those of
# the one with larger batches, which is left out where it is None. ``levers`` are switches of both
# trainings that are timed to the goal, so that these take a reader less time.
_ACCELERATE = {
    "repeats": 3,
    "seeds": 3,
    "checks": 5,
    "training": {},
    "plan": {**PRINTED, "epochs": 3},
    "rate": 1e-3,
    "rate_epochs": 1,
    "levers": {"cpu_threads": CORES, "hybridize": "static", "preprocess": "device"},
    "goal": 0.8,
    "part": {"limit": 4_800},
    "batches": None,
    "batch_goal": 0.8,
    "environment": ENVIRONMENT,
    "environment_part": {"limit": 3_200},
    "allocators": {},
    "long": {
        "repeats": 6,
        "checks": 10,
        "part": {"limit": 6_400},
        "environment_part": {"limit": 4_800},
        "batches": {"limit": 16_000},
        "as_printed": {"epochs": 10},
        "printed_environment": {
            name: value
            for arm, lever in ENVIRONMENT.items()
            if arm != "allocator"
            for name, value in lever.items()
        },
        "ablation": ALONE,
        "allocators": ALLOCATORS,
    },
}
SETTINGS = {
    "accelerate_training": {
        "smoke": {
            "repeats": 1,
            "seeds": 2,
            "checks": 5,
            "training": {"stand_in": True},
            "plan": {**PRINTED, "epochs": 3},
            "rate": 1e-3,
            "rate_epochs": 1,
            "levers": {},
            "goal": 0.3,
            "part": {"limit": 320},
            "batches": {},
            "batch_goal": 0.3,
            "environment": ENVIRONMENT,
            "environment_part": {"limit": 320},
            "allocators": {},
            "long": {},
        },
        "cpu": _ACCELERATE,
        "gpu": {
            **_ACCELERATE,
            "repeats": 6,
            "levers": {},
            "checks": 10,
            "part": {},
            "batches": {},
            "environment": {"threads": {"cpu_threads": CORES}},
            "environment_part": {},
            "long": {
                "as_printed": {"epochs": 10},
                "printed_environment": {"cpu_threads": CORES},
            },
        },
    },
    "nine_tips": {
        "smoke": {
            "repeats": 1,
            "training": {"recipe": "fashion_mnist", "stand_in": True, "limit": 256},
            "plan": {"optimizer": "adam", "learning_rate": 1e-3, "batch_size": 64},
            "photographs": {"size": 96, "limit": 16},
            "workers": (0, 2),
            "most": 256,
            "kept": {"steps": 60, "units": 128},
            "waiting": {"steps": 50},
            "pipeline": {"steps": 3, "units": 128},
            "micro_batches": (1, 4),
            "long": {},
        },
        "cpu": {
            "repeats": 3,
            "training": {"recipe": "fashion_mnist", "limit": 4_800},
            "plan": {"optimizer": "adam", "learning_rate": 1e-3, "batch_size": 64},
            "photographs": {"size": 240},
            "workers": (0, 1, 2, 10),
            "most": 4_096,
            "kept": {"steps": 200, "units": 512},
            "waiting": {"steps": 200},
            "pipeline": {"steps": 10, "units": 512},
            "micro_batches": (1, 2, 4, 8),
            "long": {"repeats": 6, "training": {"recipe": "fashion_mnist", "limit": 9_600}},
        },
        "gpu": {
            "repeats": 6,
            "training": {"recipe": "fashion_mnist"},
            "plan": {"optimizer": "adam", "learning_rate": 1e-3, "batch_size": 64},
            "photographs": {"size": 480},
            "workers": (0, 2, 4, 10),
            "most": None,
            "kept": {"steps": 200, "units": 2_048},
            "waiting": {"steps": 500},
            "pipeline": {"steps": 20, "units": 4_096},
            "micro_batches": (1, 2, 4, 8),
            "long": {},
        },
    },
}

# What the guides read on each tier, as ``NEEDS`` of the chapter.
NEEDS = {
    "smoke": (),
    "cpu": ("fashion-mnist", "penn-fudan"),
    "gpu": ("fashion-mnist", "penn-fudan"),
}

# The pairs that the README shows, named before anything is measured.
HEADLINES = {
    "garments-rate": [["printed", "rate"]],
    "garments-preparation": [["one-by-one", "together"]],
    "garments-speed": [["batch-64", "no-bias"], ["batch-64", "batch-256"]],
    "garments-environment": [["default", "pinned"]],
    "tips-waiting": [["asscalar", "not-at-all"]],
    "tips-pipeline": [["two-stages", "two-stages-4"]],
}

# Seconds and accuracies that "Accelerate Model Training with PyTorch 2.X", chapter 2, prints.
PRINTED_FIGURES = {
    "baseline": (148, 83.99),
    "bias off": (125, 83.76),
    "bias off, batch 128": (96, 82.14),
    "bias off, batch 256": (76, 80.01),
    "Intel OpenMP, 16 threads, pinned": (106, 83.25),
}
