"""Methods: one folder for each technique, with its card (README.md), its code and its hooks.

``METHODS`` lists them in the order in which the training loop calls the hooks.
"""

import os

from mxopt.core import plan as _plan
from mxopt.core.errors import DeviceError
from mxopt.methods.augmentation import Augmentation
from mxopt.methods.batched_transforms import BatchedTransforms
from mxopt.methods.bfloat16_dense import Bfloat16Dense
from mxopt.methods.blas import BLAS
from mxopt.methods.bucketing import Bucketing
from mxopt.methods.cpu_kernels import CpuKernels
from mxopt.methods.cpu_operators import CpuOperators
from mxopt.methods.data_parallel import DataParallel
from mxopt.methods.engine import Engine
from mxopt.methods.ensembles import Ensembles
from mxopt.methods.exponential_moving_average import ExponentialMovingAverage
from mxopt.methods.fused_loss import FusedLoss
from mxopt.methods.fused_updates import FusedUpdates
from mxopt.methods.gradient_accumulation import GradientAccumulation
from mxopt.methods.gradient_clipping import GradientClipping
from mxopt.methods.gradient_clipping_by_value import GradientClippingByValue
from mxopt.methods.gradient_release import GradientRelease
from mxopt.methods.graph_rewrites import GraphRewrites
from mxopt.methods.hybridize import Hybridize
from mxopt.methods.image_decoder import ImageDecoder
from mxopt.methods.input_pipeline import InputPipeline
from mxopt.methods.kvstore import KVStore
from mxopt.methods.label_smoothing import LabelSmoothing
from mxopt.methods.layer_freezing import LayerFreezing
from mxopt.methods.lr_range_test import LRRangeTest
from mxopt.methods.lr_schedule import LRSchedule
from mxopt.methods.memory_allocator import MemoryAllocator
from mxopt.methods.mesh import TensorParallel
from mxopt.methods.method import Method, TrainingRun
from mxopt.methods.model_parallel import ModelParallel
from mxopt.methods.onnx_export import OnnxExport
from mxopt.methods.opencv_transforms import OpenCVTransforms
from mxopt.methods.openmp import OpenMP
from mxopt.methods.optimizer_aggregation import OptimizerAggregation
from mxopt.methods.precision import Precision
from mxopt.methods.progressive_resizing import ProgressiveResizing
from mxopt.methods.progressive_sampling import ProgressiveSampling
from mxopt.methods.pruning import Pruning
from mxopt.methods.quantization import Quantization
from mxopt.methods.record_files import RecordFiles
from mxopt.methods.relu6_stages import ReLU6Stages
from mxopt.methods.shared_memory_loader import SharedMemoryLoader
from mxopt.methods.space_to_batch import SpaceToBatch
from mxopt.methods.tflite_export import TFLiteExport
from mxopt.methods.weight_averaging import WeightAveraging

METHODS: tuple[type[Method], ...] = (
    # the environment of the process
    Engine,
    OpenMP,
    BLAS,
    MemoryAllocator,
    OptimizerAggregation,
    # devices and processes
    DataParallel,
    ModelParallel,
    TensorParallel,
    KVStore,
    # the network
    SpaceToBatch,
    ReLU6Stages,
    CpuOperators,
    CpuKernels,
    Bfloat16Dense,
    FusedLoss,
    OpenCVTransforms,  # before the frozen stages, which are appended to the transform
    BatchedTransforms,
    LayerFreezing,
    GraphRewrites,  # the trained part, if some stages are frozen
    Quantization,
    Precision,
    Hybridize,
    # the samples
    RecordFiles,
    ImageDecoder,
    InputPipeline,
    SharedMemoryLoader,
    Bucketing,
    ProgressiveResizing,
    ProgressiveSampling,
    Augmentation,  # the batches of the loader that the two before chose
    # the updates
    LabelSmoothing,
    LRRangeTest,
    LRSchedule,
    GradientClipping,
    GradientClippingByValue,
    GradientAccumulation,
    FusedUpdates,
    Pruning,  # before averages, which are then of pruned weights
    WeightAveraging,
    ExponentialMovingAverage,
    GradientRelease,
    # after training
    OnnxExport,
    TFLiteExport,
    Ensembles,
)

__all__ = [
    "METHODS",
    "Method",
    "TrainingRun",
    "check_environment",
    "combined",
    "environment",
]

_plan.RULES[:] = [method.check for method in METHODS]


def environment(plan) -> dict[str, str]:
    """Return the environment variables that a new process needs for a plan.

    Args:
        plan: a :class:`mxopt.core.plan.Plan`; a switch that is ``None`` sets nothing.

    Raises:
        DeviceError: this machine lacks something that a switch needs.
    """
    variables: dict[str, str] = {}
    for method in METHODS:
        variables = combined(variables, method.environment(plan))
    return variables


def combined(variables: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Return the variables of two methods; libraries that both preload follow each other.

    >>> combined({"LD_PRELOAD": "a.so"}, {"LD_PRELOAD": "b.so"})
    {'LD_PRELOAD': 'a.so:b.so'}

    Args:
        variables: those of one method.
        more: those of another one, which replace variables of the same name.
    """
    preloaded = [found["LD_PRELOAD"] for found in (variables, more) if "LD_PRELOAD" in found]
    both = {**variables, **more}
    return {**both, "LD_PRELOAD": ":".join(preloaded)} if preloaded else both


def check_environment(plan) -> None:
    """Check that this process was started with a plan's environment variables.

    Args:
        plan: a :class:`mxopt.core.plan.Plan`.

    Raises:
        DeviceError: a variable differs; MXNet reads it only when it loads.
    """
    for name, value in environment(plan).items():
        if os.environ.get(name) != value:
            raise DeviceError(
                f"the plan needs {name}={value}, but this process has {os.environ.get(name)!r}, "
                "and MXNet reads it only when it loads; run the plan in a new process with "
                "mxopt.measure.run"
            )
