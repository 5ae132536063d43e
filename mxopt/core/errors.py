"""Errors that users can fix: each message says what was wrong, with the value, and what to do.

The command line prints them without a traceback and exits with status 2. In a notebook or a script
they are ordinary exceptions.
"""


class MxoptError(Exception):
    """Base class of all errors that are not defects of ``mxopt``."""


class PlanError(MxoptError, ValueError):
    """A plan has an unknown switch, an invalid value, or switches that exclude each other."""


class DataError(MxoptError):
    """Data is missing, damaged, or differs from its description; the message names the file."""


class DeviceError(MxoptError):
    """A device is missing, or this build of MXNet does not support the operation on it."""


class CapacityError(MxoptError):
    """Something does not fit into memory; the message gives both sizes."""


class RecordError(MxoptError):
    """A run record, a checkpoint or a page cannot be read or written."""


class CompatError(MxoptError, ImportError):
    """MXNet, GluonCV or GluonNLP cannot be imported here."""


class PrecisionError(MxoptError, RuntimeError):
    """The steps of mixed-precision training were called in an order that gives wrong numbers."""


class Diverged(MxoptError, ArithmeticError):
    """A loss, a score or a weight is NaN or infinite; the message names the step."""
