"""Runs the sections of a Python driver and reports each in one line; see tests/drivers/README.md.

The server is the one of PGHOST, PGPORT, PGUSER and PGDATABASE.
"""

import asyncio
import inspect
import sys
import traceback

SECTIONS = ["connect", "types_text", "types_binary", "prepared", "batch", "transactions", "errors", "cancel", "copy",
            "cursors", "catalog"]

class NotOfDriver(Exception):
    """The driver has no such thing. The text says why."""

def run(version, *modules):
    """Runs the functions of the modules that bear the names of sections, and exits with 1 if one failed."""
    print("version", version, flush=True)
    found = {name: getattr(module, name) for module in modules for name in SECTIONS if hasattr(module, name)}
    failed = [name for name in SECTIONS if not passes(name, found[name])]
    sys.exit(1 if failed else 0)

def passes(name, section):
    try:
        if inspect.iscoroutinefunction(section):
            asyncio.run(section())
        else:
            section()
    except NotOfDriver as reason:
        print("none", name, reason, flush=True)
    except Exception as error:
        print("FAILED", name, describe(error), flush=True)
        return False
    else:
        print("ok", name, flush=True)
    return True

def describe(error):
    """One line: the error, its SQLSTATE, and the line of the test."""
    origin = getattr(error, "orig", None) or error
    state = getattr(origin, "sqlstate", None) or getattr(origin, "pgcode", None) or ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/drivers/" in frame.filename]
    frames = [frame for frame in frames if not frame.filename.endswith("/sections.py")] or frames
    at = frames[-1]
    text = " ".join(f"{type(error).__name__}: {error}".split())[:600]
    return f"{at.filename.rsplit('/', 1)[-1]}:{at.lineno} `{at.line}` {state} {text}"

def equal(actual, expected, what=""):
    """Compares by their writing: NaN equals itself, 1 is not 1.0, and Decimal keeps its scale."""
    assert repr(actual) == repr(expected), f"{what}: {actual!r:.300} instead of {expected!r:.300}"
