"""Commands at the same time: none waits for another, however many there are and however much one says. Nothing here is timed: a
command that had to wait for another would wait for ever."""
import json
from concurrent.futures import ThreadPoolExecutor

from harness import EXECD_PORT

MANY = 32
# Ends when all have begun.
MEET = "mkdir -p /tmp/met; : > /tmp/met/$N; while set -- /tmp/met/*; [ $# -lt %d ]; do sleep 0.02; done; echo $#" % MANY


def meet(daemon, sandbox, token, number):
    return daemon.exec(sandbox, MEET, token=token, envs={"N": str(number)}).stdout


def test_commands_of_one_sandbox_run_side_by_side(daemon, sandbox):
    token = daemon.token(sandbox)
    with ThreadPoolExecutor(MANY) as pool:
        said = list(pool.map(lambda number: meet(daemon, sandbox, token, number), range(MANY)))
    assert said == [[str(MANY)]] * MANY


def test_commands_of_different_sandboxes_run_side_by_side(daemon, sandbox):
    """The first is held until every other has answered."""
    sandboxes = [sandbox] + [daemon.create() for _ in range(3)]
    tokens = [daemon.token(sandbox) for sandbox in sandboxes]
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(daemon.exec, sandboxes[0], "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo gone", token=tokens[0])
        assert [daemon.output(sandbox, "echo here", token=token) for sandbox, token in zip(sandboxes, tokens)] == ["here"] * 4
        assert not held.done()
        daemon.output(sandboxes[0], "touch /tmp/go", token=tokens[0])
        assert held.result().stdout == ["gone"]
    for other in sandboxes[1:]:
        daemon.delete(other)


def test_a_command_that_never_stops_talking_holds_nobody_up(daemon, sandbox):
    token = daemon.token(sandbox)
    door = f"/sandboxes/{sandbox}/proxy/{EXECD_PORT}/command"
    loud = daemon.connection()
    unread = daemon.connection()
    for connection in (loud, unread):
        connection.request("POST", door, json.dumps({"command": "yes"}), {"Content-Type": "application/json", **token})
    answer = loud.getresponse()
    for _ in range(20):
        assert len(answer.read(1 << 16)) == 1 << 16, "it goes on"
        assert daemon.output(sandbox, "echo heard", token=token) == "heard"
    loud.close()
    unread.close()
