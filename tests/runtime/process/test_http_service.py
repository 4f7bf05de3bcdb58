import json
import threading
from http.client import HTTPConnection

from runtime.process.process_runtime import ProcessRuntime
from tests.support.proxies import plain_http
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import HTTP_SERVICE, ended, log_of, request


def test_it_says_which_revision_and_version_it_is_over_one_connection(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(HTTP_SERVICE, env={"VERSION": "7"}))
    log_of(runtime, replica.route_id, "listens")
    connection = HTTPConnection(str(replica.address))
    bodies = []
    for method, path, status in [
        ("POST", "/break", 200),
        ("GET", "/health", 503),
        ("POST", "/x", 404),
        ("GET", "/", 200),
    ]:
        connection.request(method, path, body=b"some body" if method == "POST" else None)
        response = connection.getresponse()
        bodies.append(response.read())
        assert response.status == status
    connection.close()
    assert json.loads(bodies[-1]) == {
        "deployment": "web",
        "revision": "web-12345678",
        "route": str(replica.route_id),
        "version": "7",
    }


def test_every_so_many_answers_fail_and_still_say_which_revision_it_is(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(HTTP_SERVICE, env={"FAIL_EVERY": "3"}))
    log_of(runtime, replica.route_id, "listens")
    answers = [plain_http.get(f"http://{replica.address}{path}") for path in ("/", "/health", "/", "/", "/")]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 500, 200]
    assert answers[3].json()["revision"] == "web-12345678"


def test_a_request_in_flight_is_finished_before_it_stops(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(HTTP_SERVICE))
    log_of(runtime, replica.route_id, "listens")
    statuses = []

    def ask() -> None:
        connection = HTTPConnection(str(replica.address))
        connection.request("GET", "/slow?seconds=2")
        response = connection.getresponse()
        statuses.append((response.status, response.headers["Connection"], bool(response.read())))
        connection.close()

    idle = HTTPConnection(str(replica.address))
    idle.request("GET", "/")
    idle.getresponse().read()
    metrics = f"http://{replica.address}/metrics"
    eventually(lambda: plain_http.get(metrics).text == "requests_in_flight 1\n", what="the first answer to be over")
    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: plain_http.get(metrics).text == "requests_in_flight 2\n", what="it, beside the one that asks")
    runtime.terminate(replica.route_id)
    asking.join()
    idle.close()
    assert statuses == [(200, "close", True)]
    assert ended(runtime, replica.route_id).exit_code == 0
