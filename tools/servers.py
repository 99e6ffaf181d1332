"""The server under test of `make drivers` and `make clients`: one that runs already, or a single node started here."""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "cortado-drivers"
START_S = 60

def add_arguments(parser):
    parser.add_argument("--server", metavar="HOST:PORT", help="a running server; by default a Cortado is started")
    parser.add_argument("--user", default="postgres")
    parser.add_argument("--database", default="postgres")

def environment(arguments, host, port):
    """The variables that all drivers and tools read."""
    ours = {"PGHOST": host, "PGPORT": str(port), "PGUSER": arguments.user, "PGDATABASE": arguments.database}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG") or name == "PGPASSWORD"}
    return {**kept, **ours, "PGCONNECT_TIMEOUT": "10"}

@contextlib.contextmanager
def server(arguments):
    """Host and port of the server."""
    if arguments.server:
        host, _, port = arguments.server.rpartition(":")
        yield host, int(port)
        return
    program = os.environ.get("CORTADO") or build()
    with tempfile.TemporaryDirectory(prefix="cortado-drivers-") as folder:
        port, listen = free_port(), free_port()
        command = [program, "start-single-node", "--data", f"{folder}/data", "--pg", f"127.0.0.1:{port}",
                   "--listen", f"127.0.0.1:{listen}"]
        with open(f"{folder}/log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                wait_until_it_serves(process, port, f"{folder}/log")
                yield "127.0.0.1", port
                if process.poll() is not None:
                    tail = Path(f"{folder}/log").read_text(errors="replace")[-2000:]
                    raise SystemExit(f"the server ended with {process.returncode}:\n{tail}")
            finally:
                process.terminate()

def build():
    """The release binary of this clone."""
    print("building Cortado ...", flush=True)
    subprocess.run(["cargo", "build", "--release", "--locked", "--bin", "cortado"], cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    out = subprocess.run(metadata, cwd=ROOT, check=True, capture_output=True).stdout
    return str(Path(json.loads(out)["target_directory"]) / "release/cortado")

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

def wait_until_it_serves(process, port, log):
    command = ["psql", "-XAtqc", "SELECT 1", f"host=127.0.0.1 port={port} user=postgres dbname=postgres"]
    deadline = time.monotonic() + START_S
    while subprocess.run(command, capture_output=True).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the server does not serve:\n{Path(log).read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)

def table(rows):
    """Rows of texts in columns. The last column is not padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[-1]]).rstrip())
