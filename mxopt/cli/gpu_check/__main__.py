"""One part of the check, in a process of its own: prints its findings as one line of JSON."""

from __future__ import annotations

import json
import sys

from mxopt.cli.gpu_check import FAILED, OK, SKIPPED
from mxopt.core.errors import MxoptError


def main(arguments: list[str]) -> None:
    """Run the part that is named first."""
    from mxopt.cli.gpu_check import parts
    from mxopt.cli.gpu_check.faults import Fault, Skip

    name, quick = arguments[0], "--quick" in arguments
    try:
        found, rows = getattr(parts, name)(quick)
        result = {"status": OK, "found": found, "rows": rows}
    except Skip as why:
        result = {"status": SKIPPED, "found": str(why)}
    except Fault as fault:
        result = {"status": FAILED, "found": str(fault), "rows": fault.rows}
    except MxoptError as error:
        result = {"status": FAILED, "found": str(error)}
    print("\n" + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
