import pytest

from tests.support.stack.slots import Sent


@pytest.fixture
def sent() -> Sent:
    return Sent()
