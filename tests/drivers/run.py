#!/usr/bin/env python3
"""Runs script.sql with psycopg 3 and prints what it saw, one line a row or error. Arguments: port, script, mode.

Mode "text" and "binary" choose the format of results; every statement is prepared, so that the extended protocol is used
throughout. Values are printed as PostgreSQL writes them, moments in UTC.
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
    """What a value of a `--$ ` line is to the driver: numbers and booleans have types, strings get theirs from the server."""
    if literal in ("NULL", "true", "false"):
        return {"NULL": None, "true": True, "false": False}[literal]
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    return float(literal) if "." in literal else int(literal)


def runs(script):
    """The statements of a script with their values, in order."""
    statement, ran = None, True
    with open(script, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
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
                # The driver's own spelling of parameters, which goes by their order.
                statement = re.sub(r"\$\d+", "%s", statement)
            try:
                cursor.execute(statement, values, prepare=True)
                if cursor.description is not None:
                    for row in cursor.fetchall():
                        print("--> " + "|".join(show(value) for value in row))
            except psycopg.Error as error:
                print("--! " + str(error.sqlstate))


main()
