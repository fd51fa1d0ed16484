"""The conformance kit: tests that every home of the records must pass, as mixins for pytest.

    from sennit.testing import RecordsConformance


    class TestMyStore(RecordsConformance):
        @pytest.fixture
        def new_target(self):
            return lambda: create_empty_database_and_return_what_sennit_open_takes()

The embedded store is the oracle: the same writes must give the same ids, order, scores, traces and reasons. It needs
the extra `testing`.
"""

import pytest

pytest.register_assert_rewrite("sennit.testing.records")

from sennit.testing.records import RecordsConformance  # noqa: E402 - pytest must know it before it is imported

__all__ = ["RecordsConformance"]
