"""Record files: the samples of a data set one after the other in one file."""

from mxopt.methods.method import Method, exports


class RecordFiles(Method):
    """Declares the options of the workload that reads; a recipe takes the data set as any other."""

    options = {"mxopt.chapter.reading:read": ("storage", "cold")}


_NAMES = ("RecordPairs", "native_reader", "write_images", "write_pairs")
__getattr__ = exports(__name__, **dict.fromkeys(_NAMES, "files"))
__all__ = ["RecordFiles", "RecordPairs", "native_reader", "write_images", "write_pairs"]
