"""Index a folder in a process of its own, to be killed: run_index.py DATABASE FOLDER."""

from __future__ import annotations

import sys

import sennit
from sennit.ingest import index, indexer

# Small transactions: many places to be killed at.
vars(indexer)["BATCH_RECORDS"] = 20

if __name__ == "__main__":
    with sennit.open(sys.argv[1]) as db:
        print("ready", flush=True)
        index(db, sys.argv[2], progress=lambda done, total, path: print(done, flush=True))
