"""The errors a user may meet: each says what was wrong, with its value, and what to do.

The command line prints them without a traceback and leaves with status 2; a notebook or a script
sees an ordinary exception.
"""


class MxoptError(Exception):
    """Base of every error that is the user's to mend rather than a defect of ``mxopt``."""


class PlanError(MxoptError, ValueError):
    """A plan names a switch that does not exist, or gives one a value it cannot take."""


class DataError(MxoptError):
    """Data is missing, damaged, or not what its description says; the message names the file."""


class DeviceError(MxoptError):
    """A device is not there, or this build of MXNet cannot do on it what was asked."""


class CapacityError(MxoptError):
    """Something does not fit into the memory it was meant for; the message gives both sizes."""


class RecordError(MxoptError):
    """A run record, a checkpoint or a page cannot be read or written."""


class CompatError(MxoptError, ImportError):
    """MXNet, GluonCV or GluonNLP cannot be made to import here."""


class PrecisionError(MxoptError, RuntimeError):
    """The steps of mixed-precision training were taken in an order that gives wrong numbers."""


class Diverged(MxoptError, ArithmeticError):
    """A loss is no longer a number; the message names the step."""
