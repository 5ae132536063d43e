import pytest

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.kvstore.cluster import on_hosts, read_hosts, worker_number

ADDRESSES = {"one": "10.0.0.1", "two": "10.0.0.2"}


def listed(found):
    return [(role.kind, role.number, role.host) for role in found]


def test_one_machine_needs_no_network_but_its_loopback():
    found = on_hosts(2, None, 4321)
    assert listed(found) == [
        ("scheduler", 0, ""), ("server", 0, ""), ("worker", 0, ""), ("worker", 1, ""),
    ]  # fmt: skip
    assert found[-1].variables == {
        "DMLC_ROLE": "worker", "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "4321",
        "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1", "DMLC_NODE_HOST": "127.0.0.1",
        "MXOPT_WORKER": "1",
    }  # fmt: skip
    assert str(found[-1]) == "worker 1 on this machine"


def test_workers_go_round_the_hosts_and_each_host_has_a_server():
    found = on_hosts(3, ["one", "user@two"], 4321, lambda host: ADDRESSES[host])
    assert listed(found) == [
        ("scheduler", 0, "one"), ("server", 0, "one"), ("server", 1, "user@two"),
        ("worker", 0, "one"), ("worker", 1, "user@two"), ("worker", 2, "one"),
    ]  # fmt: skip
    assert {role.variables["DMLC_PS_ROOT_URI"] for role in found} == {"10.0.0.1"}
    assert found[2].variables["DMLC_NODE_HOST"] == "10.0.0.2"
    assert {role.variables["DMLC_NUM_SERVER"] for role in found} == {"2"}


def test_hosts_without_work_get_no_server():
    found = on_hosts(1, ["one", "two"], 4321, lambda host: ADDRESSES[host])
    assert {role.host for role in found} == {"one"}


def test_a_host_that_others_cannot_reach_is_refused():
    with pytest.raises(PlanError, match=r"'one' is 127.0.1.1 here, .* write its IP address"):
        on_hosts(2, ["one", "two"], 1, {"one": "127.0.1.1", "two": "10.0.0.2"}.get)


def test_a_host_without_an_address_is_named():
    def unknown(host):
        raise OSError("Name or service not known")

    with pytest.raises(PlanError, match=r"'one' has no address here \(Name or service not known\)"):
        on_hosts(1, ["one"], 1, unknown)


def test_a_worker_knows_its_number_however_it_was_started():
    assert worker_number(on_hosts(3, None, 1)[-1].variables) == 2
    assert worker_number({"HOROVOD_RANK": "3"}) == 3
    assert worker_number({}) == 0


def test_hosts_are_read_from_a_file(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("one  # the big one\n\n# two\nuser@10.0.0.2\n")
    assert read_hosts(path) == ["one", "user@10.0.0.2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-oProxyCommand=evil", "'-oProxyCommand=evil' is not a host"),
        ("one slots=4", "'one slots=4' is not a host"),
        ("# none", "names no host"),
        (None, "cannot read the hosts in"),
    ],
)
def test_a_bad_file_of_hosts_is_refused(tmp_path, text, message):
    path = tmp_path / "hosts"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PlanError, match=message):
        read_hosts(path)


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"processes": 2}, "processes=2 need a way .* kvstore='dist_sync'"),
        ({"kvstore": "horovod", "devices": "gpu:0-1"}, "one device a process"),
    ],
)
def test_plans_that_no_processes_can_follow_are_refused(switches, message):
    with pytest.raises(PlanError, match=message):
        Plan(**switches)
