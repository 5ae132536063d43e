"""The cases that are compared, and how mxopt and PyTorch run them."""

from benchmarks.given import (
    BFLOAT16_PEERS,
    HALVED_IMAGE_PEERS,
    IMAGE_PEERS,
    LAST,
    SENTENCE_PEERS,
    TUNED,
    UNPADDED_BFLOAT16_PEERS,
)
from mxopt import machine
from mxopt.cli import launch

THREADS = {"cpu_threads": machine.cpu().physical_cores}
STATIC, INTEL = {"hybridize": "static"}, {"openmp": "intel"}
KEEP, HUGE = {"allocator": "keep"}, {"pages": "huge"}
SERIAL, FUSED = {"copies": "serial"}, {"updates": "fused"}
# What `mxopt launch` sets in addition to threads, and what was measured as well and is not set.
LAUNCH, LAUNCH_DROPPED = {"launch-copies": SERIAL, "launch": launch.SWITCHES}, {"launch-huge": HUGE}

SGD = {"epochs": 2, "batch_size": 4, "learning_rate": 0.01, "momentum": 0.9}

# How mxopt's own transforms and workers read images; the first arm of a case reads as Gluon does.
READING = {"transforms": "opencv"}
WORKERS = {"num_workers": 2, "loader": "shared_memory"}

# ``levers`` are added one after the other, threads first. ``dropped`` are added after them, to show
# their effect; none was kept. ``launch``: whether to also measure the first arm in the environment
# of `mxopt launch`. By default the first arm, that with threads, those of `mxopt launch` and the
# last one are measured; the others are measured with ``--long``. ``limit`` bounds the samples of an
# epoch: it should take seconds, and all default parts little more than an hour on two cores.
# ``headline`` is the peer that the last arm is compared with before anything is measured; the page
# also names the fastest one, which is chosen by result, in the peer's favour.
STEPS = {
    "resnet": {
        "title": "DeepLabv3-ResNet-50, 240 px, batch 4",
        "options": {"network": "deeplab_resnet50", "size": 240, "limit": 12},
        "plan": SGD,
        "levers": {
            "threads": THREADS,
            "static": STATIC,
            "optimized": {"graph_rewrites": "usual"},
            "copies": SERIAL,
            "kernels": {"graph_rewrites": "usual+fewer_products+plain_layout"},
            "fused-updates": FUSED,
            "returned": {"allocator": "return"},  # for memory, not to be above the peer's
        },
        "dropped": {"huge": {**HUGE, "hybridize": "yes"}},
        "peer": "ResNetDeepLab",
        "sizes": {},
        "peers": IMAGE_PEERS,
        "headline": "tuned",
        "target": 1.2,
    },
    "mobilenet": {
        "title": "DeepLabv3-MobileNetV2, 480 px, batch 4",
        "options": {"network": "deeplab_mobilenetv2", "size": 480, "limit": 24},
        "plan": SGD,
        "levers": {
            "threads": THREADS,
            "static": STATIC,
            "interleaved": {"space_to_batch": True},
            "optimized": {"graph_rewrites": "usual"},
            "copies": SERIAL,
            "accumulated": {"batch_size": 2, "grad_accumulation": 2},
            "resident": {"preprocess": "device"},
            "kernels": {
                "space_to_batch": False,
                "graph_rewrites": "usual+inverted_residual",
                "batch_size": 4,
                "grad_accumulation": 1,
            },
        },
        "dropped": {"huge": HUGE, "openmp": INTEL},
        "launch": True,
        "peer": "MobileNetDeepLab",
        "sizes": {"relu6_stages": 16},
        "peers": HALVED_IMAGE_PEERS,
        "headline": "tuned",
        "target": 1.3,
    },
    "transformer": {
        "title": "Transformer, 3 layers of 256, batches of 2048 target tokens",
        "options": {"recipe": "translation", "limit": 700, "vocabulary": 8000},
        "plan": {
            "epochs": 2,
            "batch_size": 2048,
            "bucketing": "tokens",
            "optimizer": "adam",
            "learning_rate": 0.0005,
        },
        "levers": {
            "threads": THREADS,
            "static": STATIC,
            "pieces": {"cpu_operators": True},
            "fused": {"loss": "fused"},
            "accumulated": {"batch_size": 1024, "grad_accumulation": 2},
            "kernels": {
                "cpu_operators": False,
                "kernels": True,
                "batch_size": 2048,
                "grad_accumulation": 1,
            },
            "copies": SERIAL,
            "fused-updates": FUSED,
            "packed": {"packed": True},
        },
        "dropped": {"huge": HUGE, "openmp": INTEL},
        "launch": True,
        "peer": "Translator",
        "sizes": {"layers": 3, "units": 256, "heads": 4, "hidden": 1024, "dropout": 0.1},
        "peers": SENTENCE_PEERS,
        "headline": "best-unpadded",
        "target": 1.3,
    },
}

PADDED = {"packed": False}
# The fastest settings of MobileNetV2 by MXNet's operators, which the kernels replace.
OPERATORS = {
    "graph_rewrites": "usual",
    "space_to_batch": True,
    "batch_size": 2,
    "grad_accumulation": 2,
}
# One switch of a case's last arm, alone: without it and with it, beside peers that have it, if any;
# all of mxopt's arms with the changes of ``base``. Where a switch takes the place of settings, the
# arm without it has them, so that both are as fast as they can be.
ALONE = {
    "transformer-bfloat16": {
        "title": "The same Transformer, products in bfloat16",
        "case": "transformer",
        "base": PADDED,
        "changes": {"float32": {}, "bfloat16": {"dense": "bfloat16"}},
        "peers": BFLOAT16_PEERS,
        "headline": "best-autocast",
    },
    "transformer-bfloat16-packed": {
        "title": "The same Transformer without padding, products in bfloat16",
        "case": "transformer",
        "changes": {"float32": {}, "bfloat16": {"dense": "bfloat16"}},
        "peers": UNPADDED_BFLOAT16_PEERS,
        "headline": "best-autocast-unpadded",
    },
    "transformer-kernels": {
        "title": "The same Transformer, by MXNet's operators and by kernels",
        "case": "transformer",
        "base": PADDED,
        "changes": {"operators": {"kernels": False}, "kernels": {}},
        "peers": {},
        "headline": "operators",
    },
    "transformer-packed": {
        "title": "The same Transformer, with padding and without",
        "case": "transformer",
        "changes": {"padded": PADDED, "packed": {}},
        "peers": {},
        "headline": "padded",
    },
    "transformer-updates": {
        "title": "The same Transformer, parameters updated by MXNet's operators and by a kernel",
        "case": "transformer",
        "changes": {"mxnet": {"updates": "mxnet"}, "fused": {}},
        "peers": {},
        "headline": "mxnet",
    },
    "transformer-clipped": {
        "title": "The same Transformer with clip_norm, clipped and updated by MXNet's operators "
        "and by kernels",
        "case": "transformer",
        "base": {"clip_norm": 1.0},
        "changes": {"mxnet": {"updates": "mxnet"}, "fused": {}},
        "peers": {},
        "headline": "mxnet",
    },
    "resnet-updates": {
        "title": "The same ResNet-50, its parameters updated four in a call and one by one",
        "case": "resnet",
        "base": {"updates": "mxnet"},
        "changes": {"four": {}, "one": {"aggregation": 1}},
        "peers": {},
        "headline": "four",
    },
    "resnet-fused-updates": {
        "title": "The same ResNet-50, parameters updated by MXNet's operators and by a kernel",
        "case": "resnet",
        "changes": {"mxnet": {"updates": "mxnet"}, "fused": {}},
        "peers": {},
        "headline": "mxnet",
    },
    "resnet-layout": {
        "title": "The same ResNet-50, its batch norms by oneDNN and by a kernel",
        "case": "resnet",
        "changes": {"onednn": {"graph_rewrites": "usual+fewer_products"}, "plain": {}},
        "peers": {},
        "headline": "onednn",
    },
    "resnet-gradients": {
        "title": "The same ResNet-50, the memory of its gradients kept and released",
        "case": "resnet",
        # Fused updates wait for the whole backward pass, after which all gradients exist.
        "base": {"updates": "mxnet", "aggregation": 1},
        "changes": {"kept": {}, "released": {"gradients": "released"}},
        "peers": {},
        "headline": "kept",
    },
    "mobilenet-kernels": {
        "title": "The same MobileNetV2, by MXNet's operators with space to batch on halves of a "
        "batch, and by kernels",
        "case": "mobilenet",
        "changes": {"operators": OPERATORS, "kernels": {}},
        "peers": {},
        "headline": "operators",
    },
}

# Whole epochs from files on disk, with the levers of the case "mobilenet".
EPOCHS = {
    "title": "Two whole epochs from files on disk, MobileNetV2",
    "options": {"network": "deeplab_mobilenetv2", "size": 480, "train": 16, "validation": 8},
    "peers": {
        f"{name}{'-workers' * bool(workers)}": {"given": given, "workers": workers}
        for name, given in (("channels_last", LAST), ("tuned", {**LAST, **TUNED}))
        for workers in (0, 2)
    },
}

# How many operators of a graph MXNet runs as one; its default is 15.
BULK = {"environment": {"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "60"}}
# Further changes, each added alone to the last arm of a case and, if given, ``base``.
TRIED = {
    "folding": {
        "case": "resnet",
        # Random weights with statistics that were never computed: any update would overflow.
        "base": {"fixed_statistics": True, "graph_rewrites": "dead_taps", "learning_rate": 0.0},
        "changes": {"folded": {"graph_rewrites": "fold_batch_norm+dead_taps"}},
    },
    "tried-resnet": {
        "case": "resnet",
        "changes": {"intel": INTEL, "bulk": BULK},
    },
    "tried-mobilenet": {
        "case": "mobilenet",
        "changes": {
            "compact": {"affinity": "compact"},
            "two-at-once": {"engine_threads": 2},
            "keep": KEEP,
            "shapes-vary": {"hybridize": "yes"},
            "bulk": BULK,
        },
    },
    "tried-transformer": {
        "case": "transformer",
        "changes": {"keep": KEEP, "bulk": BULK},
    },
}
