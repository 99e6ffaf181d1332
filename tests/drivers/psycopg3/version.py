"""The version of psycopg 3: distributions ship older ones, which differ in what the sections look at."""

import psycopg

BEFORE_3_2 = tuple(int(part) for part in psycopg.__version__.split(".")[:2]) < (3, 2)
