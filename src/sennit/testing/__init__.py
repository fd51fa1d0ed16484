"""The conformance kit: tests that every backend must pass, as mixins for pytest, one for each role.

    from sennit.testing import KeywordConformance, RecordsConformance


    class TestMyRecords(RecordsConformance):
        @pytest.fixture
        def new_target(self):
            return lambda: create_empty_database_and_return_what_sennit_open_takes()

The embedded store is the oracle for records: the same writes must give the same ids, order, scores, traces and reasons.
An index is compared with a scan of the records of its own snapshot. It needs the extra `testing`.
"""

import pytest

pytest.register_assert_rewrite("sennit.testing.records", "sennit.testing.indexes")

# pytest must know the modules before they are imported.
from sennit.testing.indexes import GraphConformance, KeywordConformance, VectorConformance  # noqa: E402
from sennit.testing.records import RecordsConformance  # noqa: E402

__all__ = ["GraphConformance", "KeywordConformance", "RecordsConformance", "VectorConformance"]
