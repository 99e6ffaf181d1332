#!/usr/bin/env python3
"""Starts a PostgreSQL 15 and a Cortado of one node, and compares them on generated statements; see
tests/differential/README.md. Options are those of the runner: tools/differential.py --seed 2 --count 100000
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

import servers

DEBIAN = Path("/usr/lib/postgresql/15/bin")
START_S = 60

def program(name):
    """Debian's directory if it is there, else the PATH."""
    return str(DEBIAN / name) if (DEBIAN / name).exists() else name

def as_postgres(command):
    """The server programs refuse to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command

@contextlib.contextmanager
def postgres():
    """The address of a PostgreSQL with the locale of Cortado."""
    folder = tempfile.mkdtemp(prefix="cortado-differential-")
    os.chmod(folder, 0o777)
    data, port = f"{folder}/data", servers.free_port()
    options = f"-p {port} -c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    initdb = [program("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]
    initdb += ["--locale=C.UTF-8", "-E", "UTF8"]
    control = [program("pg_ctl"), "-D", data, "-w", "-s"]
    quiet = {"check": True, "cwd": "/", "stdout": subprocess.DEVNULL}
    try:
        subprocess.run(as_postgres(initdb), **quiet)
        start = [*control, "-l", f"{folder}/log", "-o", options, "-t", str(START_S), "start"]
        subprocess.run(as_postgres(start), **quiet)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            subprocess.run(as_postgres([*control, "-m", "immediate", "stop"]), **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

def main():
    started = time.monotonic()
    run = ["cargo", "run", "--locked", "-q", "-p", "differential", "--"]
    with postgres() as expected, servers.server(Namespace(server=None)) as (host, port):
        addresses = ["--cortado", f"{host}:{port}", "--postgres", expected]
        status = subprocess.run([*run, *addresses, *sys.argv[1:]], cwd=servers.ROOT, check=False).returncode
    print(f"{time.monotonic() - started:.0f} s")
    raise SystemExit(status)

if __name__ == "__main__":
    main()
