"""Index a folder in a separate process that a test can kill: run_index.py DATABASE FOLDER."""

from __future__ import annotations

import sys

import sennit
from sennit.ingest import index, indexer

# Small transactions, so that a kill can hit many of them.
vars(indexer)["BATCH_RECORDS"] = 20

if __name__ == "__main__":
    with sennit.open(sys.argv[1]) as db:
        print("ready", flush=True)
        index(db, sys.argv[2], progress=lambda step: print(step.files, flush=True))
