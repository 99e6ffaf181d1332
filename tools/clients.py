#!/usr/bin/env python3
"""`make clients`: the benchmark tools that others wrote, unmodified: sysbench, pgbench, go-ycsb and go-tpc.

    tools/clients.py                                # starts a single node of Cortado; CORTADO names another binary
    tools/clients.py --server 127.0.0.1:5433        # a server that runs
    tools/clients.py --seconds 30 sysbench          # longer, and this tool only

A relay between tool and server counts the SQLSTATEs of errors. Those that a transaction may meet are 40001, 40P01 and
23505; any other fails the run, and so does a tool's exit code. What is measured through the relay is not a benchmark.
"""

import argparse
import asyncio
import collections
import json
import shutil
import struct
import subprocess
import sys
import threading

from servers import CACHE, ROOT, add_arguments, environment, server, table

ALLOWED = {"40001", "40P01", "23505"}
PATIENCE_S = 1800
# The requests before a startup packet that are answered by one byte: for TLS, for GSSAPI.
NEGOTIATIONS = {80877103, 80877104}
PIECE = 1 << 16
YCSB = "github.com/pingcap/go-ycsb@v1.0.3"
TPC = "github.com/pingcap/go-tpc@v1.0.12"

class Relay(threading.Thread):
    """Passes connections on to the server, and counts the SQLSTATEs of its errors."""

    def __init__(self, host, port):
        super().__init__(daemon=True)
        self.server, self.port, self.states = (host, port), None, collections.Counter()
        self.started = threading.Event()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        listener = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        self.started.set()
        await listener.serve_forever()

    async def connection(self, client, to_client):
        writers = [to_client]
        try:
            from_server, to_server = await asyncio.open_connection(*self.server)
            writers.append(to_server)
            while True:
                head = await client.readexactly(8)
                size, code = struct.unpack("!II", head)
                to_server.write(head + await client.readexactly(size - 8))
                if code not in NEGOTIATIONS:
                    break
                answer = await from_server.readexactly(1)
                to_client.write(answer)
            await asyncio.gather(self.requests(client, to_server), self.answers(from_server, to_client))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for writer in writers:
                writer.close()

    async def requests(self, client, to_server):
        while piece := await client.read(PIECE):
            to_server.write(piece)
            await to_server.drain()
        to_server.write_eof()

    async def answers(self, from_server, to_client):
        rest = b""
        while piece := await from_server.read(PIECE):
            to_client.write(piece)
            rest += piece
            at = 0
            while len(rest) >= at + 5:
                size = int.from_bytes(rest[at + 1:at + 5], "big") + 1
                if len(rest) < at + size:
                    break
                if rest[at] == ord("E"):
                    self.count(rest[at + 5:at + size])
                at += size
            rest = rest[at:]
            await to_client.drain()
        to_client.write_eof()

    def count(self, fields):
        named = {field[:1]: field[1:].decode(errors="replace") for field in fields.split(b"\0")}
        state = named.get(b"C", "?")
        self.states[state] += 1
        if state not in ALLOWED and self.states[state] == 1:
            print(f"    {state} {named.get(b'M', '')}", flush=True)

class Client:
    """The tools, each a list of steps: a name, and a command."""

    def __init__(self, arguments, port):
        self.seconds, self.host, self.port = arguments.seconds, "127.0.0.1", str(port)
        self.user, self.database = arguments.user, arguments.database

    def sysbench(self):
        """All scripts of OLTP and of random selects, with their defaults; prepare, run and cleanup of each."""
        connection = ["--db-driver=pgsql", f"--pgsql-host={self.host}", f"--pgsql-port={self.port}",
                      f"--pgsql-user={self.user}", f"--pgsql-db={self.database}", "--pgsql-password="]
        scripts = ["oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write",
                   "oltp_update_index", "oltp_update_non_index", "oltp_write_only", "select_random_points",
                   "select_random_ranges"]
        for script in scripts:
            yield f"{script} prepare", ["sysbench", script, *connection, "prepare"]
            for threads in [1, 8]:
                run = ["sysbench", script, *connection, f"--time={self.seconds}", f"--threads={threads}", "run"]
                yield f"{script} run, {threads} threads", run
            yield f"{script} cleanup", ["sysbench", script, *connection, "cleanup"]

    def pgbench(self):
        """All steps of -i, and every built-in script in every protocol."""
        connection = ["-h", self.host, "-p", self.port, "-U", self.user, self.database]
        for steps in ["dtgvpf", "dtGvpf"]:
            yield f"-i -I {steps}", ["pgbench", "-i", "-q", "-I", steps, *connection]
        for script in ["tpcb-like", "simple-update", "select-only"]:
            for mode in ["simple", "extended", "prepared"]:
                run = ["pgbench", "-b", script, "-M", mode, "-c", "8", "-T", str(self.seconds), "--max-tries=100"]
                yield f"{script}, {mode}", [*run, *connection]
        yield "-i -I d", ["pgbench", "-i", "-I", "d", *connection]

    def go_ycsb(self):
        """Workloads a to f, as they are: load and run of each."""
        folder = CACHE / YCSB.rsplit("/", 1)[-1]
        connection = [f"pg.host={self.host}", f"pg.port={self.port}", f"pg.user={self.user}", f"pg.db={self.database}",
                      "dropdata=true"]
        options = [word for setting in connection for word in ("-p", setting)]
        for workload in "abcdef":
            path = folder / f"workloads/workload{workload}"
            command = [CACHE / "bin/go-ycsb", "load", "postgresql", "-P", path, *options]
            yield f"load, workload {workload}", command
            command = [CACHE / "bin/go-ycsb", "run", "postgresql", "-P", path, *options[:-2], "-p", "threadcount=8"]
            yield f"run, workload {workload}", command

    def go_tpc(self):
        """TPC-C with one warehouse: load, all consistency conditions, run, those that hold after it, cleanup."""
        options = ["-d", "postgres", "-H", self.host, "-P", self.port, "-U", self.user, "-D", self.database,
                   "--conn-params", "sslmode=disable", "--warehouses", "1"]
        tpcc = [CACHE / "bin/go-tpc", "tpcc"]
        yield "tpcc prepare", [*tpcc, "prepare", *options, "-T", "4"]
        yield "tpcc check --check-all", [*tpcc, "check", *options, "--check-all"]
        yield "tpcc run", [*tpcc, "run", *options, "-T", "4", "--time", f"{3 * self.seconds}s"]
        yield "tpcc check", [*tpcc, "check", *options]
        yield "tpcc cleanup", [*tpcc, "cleanup", *options]

TOOLS = {"sysbench": Client.sysbench, "pgbench": Client.pgbench, "go-ycsb": Client.go_ycsb, "go-tpc": Client.go_tpc}

def install(tool):
    """Installs a tool; returns why it cannot run, or nothing."""
    if tool in ("sysbench", "pgbench"):
        return None if shutil.which(tool) else f"{tool} is not installed (make clients installs it on Debian)"
    if shutil.which("go") is None:
        return "Go is not installed"
    (CACHE / "bin").mkdir(parents=True, exist_ok=True)
    if (CACHE / "bin" / f"{tool}.{version(tool)}").exists():
        return None
    # Each is built as the main module, so that its own go.mod and go.sum say which dependencies it has.
    module = YCSB if tool == "go-ycsb" else TPC
    out = subprocess.run(["go", "mod", "download", "-json", module], check=True, capture_output=True, cwd=CACHE).stdout
    folder = CACHE / module.rsplit("/", 1)[-1]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(json.loads(out)["Dir"], folder)
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    subprocess.run(["go", "build", "-o", CACHE / "bin" / tool, f"./cmd/{tool}"], cwd=folder, check=True)
    (CACHE / "bin" / f"{tool}.{version(tool)}").touch()
    return None

def version(tool):
    if tool in ("go-ycsb", "go-tpc"):
        return (YCSB if tool == "go-ycsb" else TPC).rsplit("@", 1)[-1]
    words = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout.split()
    return next((word for word in words if word[0].isdigit()), "?")

# go-ycsb and go-tpc exit with 0 whatever happens: what they print when they are done, and when something failed.
DONE = {"go-ycsb": "Run finished", "go-tpc": "Finished"}
COMPLAINTS = ["panic:", "_ERROR ", "_ERR ", " failed, err ", "Error: "]

def wrong(tool, done, states):
    """Why a step failed, or nothing."""
    others, output = {state for state in states if state not in ALLOWED}, done.stdout + done.stderr
    complaints = [complaint.strip() for complaint in COMPLAINTS if complaint in output]
    if others:
        return f"errors {', '.join(sorted(others))}"
    if done.returncode != 0:
        return f"exit code {done.returncode}"
    if tool not in DONE:
        return None
    # Aborted transactions are reported too; the relay has seen why.
    if complaints and not (states and set(complaints) <= {"_ERROR", "_ERR"}):
        return f"reported {', '.join(complaints)}"
    return None if DONE[tool] in output else "not finished"

def run(tool, arguments, host, port):
    """Runs the steps of a tool. Returns its row of the table."""
    reason = install(tool)
    if reason:
        return [tool, "?", "0", f"FAILED {reason}"]
    passed, failed, total = 0, [], collections.Counter()
    relay = Relay(host, port)
    relay.start()
    relay.started.wait()
    for name, command in TOOLS[tool](Client(arguments, relay.port)):
        relay.states.clear()
        command = ["timeout", "--kill-after=5", str(PATIENCE_S), *map(str, command)]
        done = subprocess.run(command, env=environment(arguments, "127.0.0.1", relay.port), cwd=ROOT,
                              capture_output=True, text=True)
        states = dict(relay.states)
        total.update(states)
        reason = wrong(tool, done, states)
        print(f"  {tool} {name}: {reason or 'ok'} {states or ''}".rstrip(), flush=True)
        if reason:
            failed.append(f"{name} ({reason})")
            print("    " + "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-8:]), flush=True)
        else:
            passed += 1
    counts = ", ".join(f"{state}: {count}" for state, count in sorted(total.items()))
    notes = "FAILED " + "; ".join(failed) if failed else "all"
    return [tool, version(tool), f"{passed}/{passed + len(failed)}", f"{notes} [{counts or 'no errors'}]"]

def main():
    parser = argparse.ArgumentParser(description="Runs the benchmark tools of others.")
    add_arguments(parser)
    parser.add_argument("--seconds", type=int, default=3, help="how long each script runs (3)")
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=f"of {', '.join(TOOLS)}; all by default")
    arguments = parser.parse_args()
    unknown = set(arguments.tools) - set(TOOLS)
    if unknown:
        parser.error(f"no such tool: {', '.join(sorted(unknown))}")
    rows = [["tool", "version", "passed", "steps"]]
    with server(arguments) as (host, port):
        rows += [run(tool, arguments, host, port) for tool in arguments.tools or TOOLS]
    print()
    table(rows)
    sys.exit(any("FAILED" in row[-1] for row in rows))

if __name__ == "__main__":
    main()
