#!/usr/bin/env python3
"""`make drivers`: the driver tests of tests/drivers, all of them, against one server. Prints a table and the failures.

    tools/drivers.py                                # starts a single node of Cortado; CORTADO names another binary
    tools/drivers.py --server 127.0.0.1:5433        # a server that runs
    tools/drivers.py pgx psycopg3                   # these only

What is missing is installed into ~/.cache/cortado-drivers. The exit code is 1 if a section failed or did not run.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from servers import CACHE, ROOT, add_arguments, environment, server, table

FOLDER = ROOT / "tests/drivers"
SECTIONS = ["connect", "types_text", "types_binary", "prepared", "batch", "transactions", "errors", "cancel", "copy",
            "cursors", "catalog"]
PATIENCE_S = 300

def run(command, **options):
    """Runs a step of an installation."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout

def need(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)}")

def cached(name, lock, install):
    """A folder that `install` fills once for each content of the lock file."""
    digest = hashlib.sha256((FOLDER / lock).read_bytes()).hexdigest()[:12]
    folder = CACHE / f"{name}-{digest}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(folder)
        (folder / "complete").touch()
    return folder

def python(driver):
    def install(folder):
        run([sys.executable, "-m", "venv", folder / "venv"])
        requirements = FOLDER / "requirements.txt"
        options = ["-q", "--require-hashes", "--only-binary", ":all:"]
        run([folder / "venv/bin/pip", "install", *options, "-r", requirements])

    folder = cached("python", "requirements.txt", install)
    return [folder / "venv/bin/python", "-B", FOLDER / driver / "main.py"]

def node(driver):
    need("node", "npm")

    def install(folder):
        for name in ["package.json", "package-lock.json"]:
            shutil.copy(FOLDER / driver / name, folder)
        run(["npm", "ci", "--silent", "--ignore-scripts"], cwd=folder)

    # Modules are found from the folder of the file that imports them.
    folder = cached(driver, f"{driver}/package-lock.json", install)
    for file in (FOLDER / driver).glob("*.js"):
        shutil.copy(file, folder)
    return ["node", "--no-deprecation", folder / "main.js"]

def go(driver):
    need("go")
    program = CACHE / "bin" / driver
    run(["go", "build", "-mod=readonly", "-o", program, f"./{driver}"], cwd=FOLDER)
    return [program]

def maven(driver):
    need("mvn", "java")
    out = CACHE / driver
    run(["mvn", "-q", "-B", f"-Dout={out}", "compile"], cwd=FOLDER / driver)
    return ["java", "-cp", f"{out}/classes:{out}/lib/*", "drivers.Main"]

def cargo(_):
    need("cargo")
    return ["cargo", "run", "-q", "--locked", "-p", "driver"]

def script(driver):
    need("psql", "bash")
    return [FOLDER / driver / "main.sh"]

DRIVERS = {
    "psql": script, "psycopg2": python, "psycopg3": python, "asyncpg": python, "sqlalchemy": python,
    "node-postgres": node, "pgx": go, "lib-pq": go, "pgjdbc": maven, "tokio-postgres": cargo,
}

def sections(output):
    """The version, and the outcome of each section: `ok`, `none` or `FAILED`, and its text."""
    version, outcomes = "?", {}
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        name, _, text = rest.partition(" ")
        if word == "version":
            version = rest
        elif word in ("ok", "none", "FAILED") and name in SECTIONS:
            outcomes[name] = (word, text)
    return version, outcomes

def test(driver, variables):
    """Runs one driver. Returns its row of the table and its failures."""
    try:
        command = [str(part) for part in DRIVERS[driver](driver)]
    except (RuntimeError, OSError) as error:
        return [driver, "?", "0", "not installed"], [f"{driver}: {error}"]
    variables = {**variables, "PYTHONPATH": str(FOLDER / "harness")}
    # A program that hangs ends with its children: with the process group that it leads.
    command = ["timeout", "--kill-after=5", str(PATIENCE_S), *command]
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True)
    version, outcomes = sections(done.stdout)
    failures = [f"{driver} {name}: {text}" for name, (word, text) in outcomes.items() if word == "FAILED"]
    missing = [name for name in SECTIONS if name not in outcomes]
    if missing or (done.returncode != 0 and not failures):
        failures.append(f"{driver}: exit code {done.returncode}, no outcome of {', '.join(missing) or 'nothing'}\n"
                        + done.stderr[-1500:])
    passed = sum(word == "ok" for word, _ in outcomes.values())
    absent = [f"{name}: not in this driver" for name, (word, _) in outcomes.items() if word == "none"]
    failed = [name for name in SECTIONS if outcomes.get(name, ("FAILED", ""))[0] == "FAILED"]
    notes = ["FAILED " + ", ".join(failed)] if failed else []
    return [driver, version, f"{passed}/{len(SECTIONS) - len(absent)}", "; ".join(notes + absent) or "all"], failures

def main():
    parser = argparse.ArgumentParser(description="Runs the driver tests.")
    add_arguments(parser)
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=f"of {', '.join(DRIVERS)}; all by default")
    arguments = parser.parse_args()
    unknown = set(arguments.drivers) - set(DRIVERS)
    if unknown:
        parser.error(f"no such driver: {', '.join(sorted(unknown))}")
    rows, failures = [["driver", "version", "passed", "sections"]], []
    with server(arguments) as (host, port):
        variables = environment(arguments, host, port)
        for driver in arguments.drivers or DRIVERS:
            print(f"{driver} ...", flush=True)
            row, failed = test(driver, variables)
            rows.append(row)
            failures += failed
    print()
    table(rows)
    if failures:
        print("\n" + "\n".join(failures))
        sys.exit(1)

if __name__ == "__main__":
    main()
