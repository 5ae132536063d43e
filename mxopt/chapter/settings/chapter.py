"""What the chapter's notebooks measure on each tier: sizes, plans and levers."""

from mxopt import machine

# MXNet's own default is half of the hardware threads, which may be fewer.
CORES = machine.cpu().physical_cores

# The environment of `mxopt launch`, which the first lever of every ladder sets.
LAUNCH = {"cpu_threads": CORES, "copies": "serial", "allocator": "keep"}

# Levers that make an epoch of translation faster on a CPU, and change nothing of what it learns.
TRANSLATION_LEVERS = {
    "launch": LAUNCH,
    "cached": {"preprocess": "cached"},
    "static": {"hybridize": "static"},
    "cpu_operators": {"cpu_operators": True},
    "fused": {"loss": "fused"},
}

# What each tier measures, by notebook. ``repeats`` is the number of runs of each arm, decided
# before anything is measured; with three instead of six an interval is more than twice as wide. The
# smoke tier shows that everything runs; of one run or two nothing can be concluded.
SETTINGS = {
    "8_1": {
        "smoke": {
            "repeats": 1,
            "elementwise": {"size": 1000, "rounds": 10},
            "chains": {"size": 700, "length": 12},
            "loading": {"size": 240, "limit": 40},
            "workers": (0, 2),
            "batch_sizes": (1, 16),
            "beside_batch_sizes": (16,),
            "chart_repeats": 1,
            "training": {"network": "tiny", "size": 96, "limit": 40},
            "plan": {"batch_size": 4, "epochs": 3, "learning_rate": 0.1, "momentum": 0.9},
            "long": {},
        },
        "cpu": {
            "repeats": 3,
            "elementwise": {"size": 2000, "rounds": 10},
            "chains": {"size": 700, "length": 40},
            "loading": {"size": 480},
            "workers": (0, 1, 2),
            "batch_sizes": (1, 16),
            "beside_batch_sizes": (1, 16),
            "chart_repeats": 1,
            "training": {"network": "tiny", "size": 160},
            "plan": {"batch_size": 4, "epochs": 3, "learning_rate": 0.1, "momentum": 0.9},
            "long": {
                "repeats": 6,
                "workers": (0, 1, 2, 4),
                "batch_sizes": (1, 4, 16),
                "plan": {"batch_size": 4, "epochs": 4, "learning_rate": 0.1, "momentum": 0.9},
            },
        },
        "gpu": {
            "repeats": 6,
            "elementwise": {"size": 10000, "rounds": 10},
            "chains": {"size": 2000, "length": 100},
            "loading": {"size": 480},
            "workers": (0, 1, 2, 4, 8),
            "batch_sizes": (1, 2, 4, 8, 16),
            "beside_batch_sizes": (1, 16),
            "chart_repeats": 2,
            "training": {"network": "deeplab_resnet101", "size": 480},
            "plan": {"batch_size": 4, "epochs": 10, "learning_rate": 0.1, "hybridize": "static"},
            "long": {},
        },
    },
    # ``speed`` are levers that make an epoch faster, ``learning`` those that change what an epoch
    # learns, each added to those before it (mxopt.measure.ladder); ``head`` is a lever that changes
    # the initial weights; ``measured`` are the arms that are trained in full. ``goal`` is the score
    # on the validation split that arms are timed to, chosen by runs with the seeds 100 and above
    # (measured runs have seeds from 0): above what any arm has at step 0, below what all reach.
    # ``margin`` is how much of the score on the test split may be lost. ``long`` replaces settings
    # where hours are available (LONG=1).
    "8_2": {
        "smoke": {
            "repeats": 2,
            "checks": 2,
            "training": {"network": "tiny", "size": 96, "limit": 40},
            "plan": {"batch_size": 4, "epochs": 6, "learning_rate": 0.1},
            "speed": {
                "launch": LAUNCH,
                "static": {"hybridize": "static"},
                "cached": {"preprocess": "cached"},
            },
            "learning": {"after": {"momentum": 0.9}},
            "head": {},
            "measured": ("after",),
            "goal": 0.4,
            "margin": 0.05,
            "ladder": {"limit": 20, "epochs": 2},
            "others": {"affinity": "compact", "progressive_resizing": 64},
            "long": {},
        },
        "cpu": {
            "repeats": 3,
            "checks": 4,
            "training": {"network": "deeplab_mobilenetv2", "size": 480, "reset_head": True},
            "plan": {"batch_size": 4, "epochs": 1, "learning_rate": 0.01},
            "speed": {
                "launch": LAUNCH,
                "static": {"hybridize": "static"},
                "opencv": {"transforms": "opencv"},
                "cached": {"preprocess": "cached"},
                "space_to_batch": {"space_to_batch": True},
                "freeze_stages": {"freeze_stages": 7},
                "fused": {"hybridize": "fused"},
                "rewrites": {"graph_rewrites": "usual"},
            },
            "learning": {
                "momentum": {
                    "learning_rate": 0.012,
                    "momentum": 0.9,
                    "clip_norm": 1.0,
                    "warmup_epochs": 0.3,
                },
                "poly": {"schedule": "poly"},
                "after": {"swa_start": 0.5},
            },
            "head": {"kept": {"reset_head": False}},
            "measured": ("after",),
            "goal": 0.85,
            "margin": 0.01,
            "ladder": {"limit": 8, "epochs": 2},
            "others": {"openmp": "intel", "relu6_stages": 7},
            "long": {
                "repeats": 6,
                "plan": {"batch_size": 4, "epochs": 3, "learning_rate": 0.01},
                "goal": 0.875,
                "others": {
                    "openmp": "intel",
                    "affinity": "compact",
                    "batch_size": 8,
                    "progressive_resizing": 320,
                    "relu6_stages": 7,
                },
                "measured": ("launch", "after"),
                "kept_goal": 0.89,
                "kept_repeats": 3,
                "ablation": {
                    "launch": LAUNCH,
                    "static": {"hybridize": "static"},
                    "frozen": {"freeze_stages": 7, "preprocess": "cached"},
                    "rewrites": {"graph_rewrites": "usual"},
                },
            },
        },
        "gpu": {
            "repeats": 3,
            "checks": 2,
            "training": {"network": "deeplab_resnet101", "size": 480},
            "plan": {"batch_size": 4, "epochs": 10, "learning_rate": 0.1},
            "speed": {
                "launch": LAUNCH,
                "static": {"hybridize": "static"},
                "device": {"preprocess": "device"},
                "amp": {"precision": "amp"},
            },
            "learning": {"after": {"momentum": 0.9, "learning_rate": 0.01, "schedule": "poly"}},
            "head": {},
            "measured": ("launch", "faster", "after"),
            "goal": 0.9,  # below the 0.907 that the chapter prints for its run before
            "margin": 0.01,
            "ladder": {"limit": 40, "epochs": 2},
            "others": {"batch_size": 8},
            "long": {},
        },
    },
    "8_3": {
        "smoke": {
            "repeats": 1,
            "score": "chrf",
            "checks": 2,
            "training": {
                "stand_in": True,
                "limit": 2000,
                "vocabulary": 600,
                "layers": 2,
                "units": 64,
                "hidden": 128,
                "beam": 2,
                "scored": 50,
            },
            "plan": {"optimizer": "adam", "batch_size": 32, "epochs": 1, "learning_rate": 0.002},
            "speed": TRANSLATION_LEVERS,
            "equal": {"limit": 800},
            "margin": 3,
            "goal": 15,
            "goal_epochs": {"before": 4, "after": 3},
            "goal_repeats": 1,
            "goal_margin": 3,
            "learning": {
                "after": {
                    "bucketing": "tokens",
                    "batch_size": 224,
                    "schedule": "inverse_sqrt",
                    "warmup_epochs": 0.5,
                    "learning_rate": 0.004,
                    "clip_norm": 1.0,
                },
            },
            "ladder": {"limit": 300, "epochs": 2},
            "long": {},
        },
        "cpu": {
            "repeats": 3,
            "score": "bleu",
            "checks": 2,
            "training": {"vocabulary": 4000, "layers": 2, "units": 128, "hidden": 512},
            "plan": {"optimizer": "adam", "batch_size": 128, "epochs": 1, "learning_rate": 0.002},
            "speed": TRANSLATION_LEVERS,
            "equal": {"limit": 2000, "scored": 300},
            "margin": 1,
            "goal": 20,
            "goal_epochs": {"after": 2},
            "goal_repeats": 1,
            "goal_margin": 1,
            "learning": {
                "after": {
                    "bucketing": "tokens",
                    "batch_size": 512,
                    "schedule": "inverse_sqrt",
                    "warmup_epochs": 0.3,
                    "learning_rate": 0.0025,
                    "clip_norm": 1.0,
                },
            },
            "ladder": {"limit": 480, "epochs": 2},
            "long": {
                "equal": {"limit": 4000},
                "ladder": {"limit": 640, "epochs": 2},
                "bucketed": 2_000,
                "goal_epochs": {"before": 3, "after": 3},
                "goal_repeats": 3,
                "ablation": {
                    "launch": LAUNCH,
                    "static": {"hybridize": "static"},
                    "cpu_operators": {"cpu_operators": True},
                    "fused": {"loss": "fused"},
                },
                "longer": {
                    "training": {
                        "limit": None,
                        "vocabulary": 4000,
                        "layers": 3,
                        "units": 256,
                        "hidden": 512,
                    },
                    "plan": {
                        "epochs": 10,
                        "batch_size": 1024,
                        "schedule": "cosine",
                        "learning_rate": 0.0007,
                        "warmup_epochs": 0.5,
                        "swa_start": 9,
                    },
                },
            },
        },
        "gpu": {
            "repeats": 3,
            "score": "bleu",
            "checks": 2,
            "training": {"pretrained": True},
            "plan": {"optimizer": "adam", "batch_size": 128, "epochs": 5, "learning_rate": 0.0003},
            "speed": {
                "launch": LAUNCH,
                "cached": {"preprocess": "cached"},
                "static": {"hybridize": "static"},
                "amp": {"precision": "amp"},
            },
            "equal": {},
            "margin": 0.5,
            "goal": None,  # no run with other seeds has shown what can be reached
            "goal_epochs": {"after": 5},
            "goal_repeats": 1,
            "goal_margin": 0.5,
            "learning": {
                "after": {
                    "bucketing": "tokens",
                    "batch_size": 4096,
                    "schedule": "inverse_sqrt",
                    "warmup_epochs": 1,
                    "learning_rate": 0.0007,
                    "clip_norm": 1.0,
                },
            },
            "ladder": {"limit": 4000, "epochs": 2},
            "long": {},
        },
    },
}

# Sizes of the network that the gpu tier fine-tunes, for use where its weights are unavailable.
FROM_SCRATCH = {"layers": 6, "units": 512, "heads": 8, "hidden": 2048}

# The pairs of each experiment that the README shows, named before anything is measured; those of
# arms that a tier does not measure are left out.
HEADLINES = {
    "engine": [["naive", "threaded"]],
    "chains": [["naive", "threaded"]],
    "placement": [["lazy", "cached"], ["lazy", "device"]],
    "precision": [["float32", "amp"], ["float32", "bfloat16"]],
    "parallel": [["one", "many-scaled"]],
    "segmentation": [["before", "after"], ["launch", "after"]],
    "segmentation-kept": [["before", "after"]],
    "translation": [["before", "after"], ["launch", "after"]],
    "translation-goal": [["before", "after"], ["launch", "after"]],
    "text-placement": [["lazy", "device"]],
    "bucketing": [["as-they-come", "by-length"]],
}

# What each tier's notebooks read. It is fetched before anything is measured, because measured
# processes download nothing.
NEEDS = {
    "smoke": ("penn-fudan",),
    "cpu": ("penn-fudan", "deeplab-mobilenetv2", "multi30k"),
    "gpu": ("penn-fudan", "multi30k"),
}
