"""Record files: the samples of a data set one after the other in one file."""

from mxopt.methods.method import Method, exports


class RecordFiles(Method):
    """Declares the options of workloads that read; a recipe takes the data set as any other."""

    options = {
        "mxopt.chapter.reading:read": ("storage", "cold"),
        "mxopt.chapter.storage_workloads:photographs": ("storage", "side", "quality", "cold"),
        "mxopt.chapter.storage_workloads:several": ("files", "ordered", "pausing"),
    }


_FILES = ("RecordPairs", "native_reader", "write_images", "write_pairs")
_SEVERAL = ("arrays", "interleaved")
__getattr__ = exports(
    __name__, **dict.fromkeys(_FILES, "files"), **dict.fromkeys(_SEVERAL, "several")
)
__all__ = ["RecordFiles", *_FILES, *_SEVERAL]
