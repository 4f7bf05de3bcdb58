import pytest

from tests.support.slots import Sent


@pytest.fixture
def sent() -> Sent:
    return Sent()
