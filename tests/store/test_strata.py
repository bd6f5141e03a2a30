"""Small strata are read together: no total and no difference tells of one of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.store.strata import FEWEST_OF_STRATUM, OTHER_LINKS, readable_strata

sizes = st.dictionaries(st.text("abc", max_size=4), st.integers(1, 60), max_size=8)


@pytest.mark.security
@given(sizes)
def test_no_stratum_below_25_is_read_by_its_own_name_unless_it_is_all_there_is(found):
    names = readable_strata(found)
    assert names.keys() == found.keys()
    for stratum, name in names.items():
        assert name in (stratum, OTHER_LINKS)
        assert name == OTHER_LINKS or found[stratum] >= FEWEST_OF_STRATUM or len(found) == 1


@pytest.mark.security
@given(sizes)
def test_what_is_read_together_is_at_least_25_unless_that_is_everything(found):
    names = readable_strata(found)
    joined = [found[stratum] for stratum, name in names.items() if name == OTHER_LINKS]
    assert sum(joined) >= FEWEST_OF_STRATUM or len(joined) in (0, len(found))
    # A stratum taken from a total is never the only one missing there.
    assert len(joined) != 1


@given(sizes)
def test_no_more_is_joined_than_is_needed(found):
    names = readable_strata(found)
    joined = sorted(found[stratum] for stratum, name in names.items() if name == OTHER_LINKS)
    if len(found) > 1 and joined and joined[-1] >= FEWEST_OF_STRATUM:
        assert sum(joined[:-1]) < FEWEST_OF_STRATUM
