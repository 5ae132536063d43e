"""The stand-in for Penn-Fudan."""

STAND_IN_MARK = "STAND-IN.txt"
EDITION = 1


def file_names():
    """Names."""
    return (STAND_IN_MARK,)
