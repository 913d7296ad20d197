#!/usr/bin/env python3
"""Writes the Parquet files of the fuzzing corpus. Needs pyarrow.

    python3 tools/reference/parquet_corpus.py fuzz/corpus/parquet
"""

import sys

import pyarrow as pa
import pyarrow.parquet as pq

rows = pa.table(
    {
        "class": ["no", "yes", "no", "yes"],
        "code": pa.array(["red", "blue", "green", "red"]).dictionary_encode(),
        "age": pa.array([20.0, 60.0, None, 41.5]),
        "ward": ["a", "c", "b", "a"],
    }
)
whole = rows.set_column(2, "age", pa.array([20, 60, 33, 41], pa.int32()))


def write(name, table, **options):
    pq.write_table(table, f"{sys.argv[1]}/{name}.parquet", store_schema=False, **options)


write("plain", rows, compression="none", write_statistics=False)
write("snappy", rows, compression="snappy")
write("gzip", rows, compression="gzip")
write("zstd", whole, compression="zstd", data_page_version="2.0")
