#!/usr/bin/env python3
"""Runs script.sql with psycopg 3 and prints one line for each row or error. Arguments: port, script, mode.

The mode, "text" or "binary", is the format of results. Every statement is prepared, so all use the extended protocol.
Values are printed as PostgreSQL writes them, timestamps in UTC.
"""

import datetime
import re
import sys

import psycopg

def show(value):
    if value is None:
        return r"\N"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return r"\x" + value.hex()
    if isinstance(value, datetime.datetime):
        moment = value.astimezone(datetime.timezone.utc)
        fraction = f".{moment.microsecond:06}".rstrip("0").rstrip(".")
        return moment.strftime("%Y-%m-%d %H:%M:%S") + fraction + "+00"
    return str(value)

def value(literal):
    """A value of a `--$ ` line as a parameter: numbers and booleans are typed, the server types strings."""
    if literal in ("NULL", "true", "false"):
        return {"NULL": None, "true": True, "false": False}[literal]
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    return float(literal) if "." in literal else int(literal)

def runs(script):
    """The statements of a script with their values, in order."""
    statement, ran = None, True
    with open(script, encoding="utf-8") as file:
        lines = file.read().replace("\\\n", "").split("\n")
    for line in lines:
        if line.startswith("--$ "):
            yield statement, [value(literal) for literal in line[4:].split("|")]
            ran = True
        elif line and not line.startswith("--"):
            if not ran:
                yield statement, None
            statement, ran = line, False
    if not ran:
        yield statement, None

def main():
    port, script, mode = sys.argv[1:]
    with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True) as conn:
        cursor = conn.cursor(binary=mode == "binary")
        for statement, values in runs(script):
            if values is not None:
                # The driver's own parameter syntax, which is positional.
                statement = re.sub(r"\$\d+", "%s", statement)
            try:
                cursor.execute(statement, values, prepare=True)
                if cursor.description is not None:
                    for row in cursor.fetchall():
                        print("--> " + "|".join(show(value) for value in row))
            except psycopg.Error as error:
                print("--! " + str(error.sqlstate))

main()
