#!/usr/bin/env python3
"""Runs script.sql with psycopg 3 and prints what it saw, one line a row or error. Arguments: port, script, mode.

Mode "text" and "binary" choose the format of results; every statement without parameters is prepared, so that the extended protocol
is used throughout.
"""

import sys

import psycopg


def show(value):
    if value is None:
        return r"\N"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def main():
    port, script, mode = sys.argv[1:]
    with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True) as conn:
        cursor = conn.cursor(binary=mode == "binary")
        with open(script, encoding="utf-8") as lines:
            for line in lines:
                line = line.rstrip("\n")
                if not line or line.startswith("--"):
                    continue
                try:
                    cursor.execute(line, prepare=True)
                    if cursor.description is not None:
                        for row in cursor.fetchall():
                            print("--> " + "|".join(show(value) for value in row))
                except psycopg.Error as error:
                    print("--! " + str(error.sqlstate))


main()
