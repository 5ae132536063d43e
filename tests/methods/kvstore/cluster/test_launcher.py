import shlex
import subprocess
import sys

import pytest

from mxopt.methods.kvstore.cluster import launch, launcher, on_hosts
from mxopt.methods.kvstore.cluster.launcher import command

ROLES = on_hosts(2, None, 4321)


@pytest.fixture
def impatient(monkeypatch):
    """Give processes that would not end by themselves little time to."""
    monkeypatch.setattr(launcher, "GRACE", 0.5)


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Give all others more time than a busy machine takes to start a shell."""
    monkeypatch.setattr(launcher, "GRACE", 60)


def shell(script):
    return launch(ROLES, ["sh", "-c", script], {"COMMON": "yes"}, ["input"] * len(ROLES))


@pytest.mark.timeout(120)
def test_when_one_has_died_all_are_ended_and_it_is_named(impatient, members):
    said = shell('if [ "$MXOPT_WORKER" = 1 ]; then echo no memory; exit 3; fi; sleep 1000')
    assert said == "worker 1 on this machine ended with status 3: no memory"
    assert not members()


@pytest.mark.timeout(120)
@pytest.mark.fault(
    "runs",
    "the server of many workers is killed",
    sees="server 0 on this machine was killed by SIGKILL",
    lost="the steps since the last checkpoint",
)
def test_a_server_that_was_killed_is_named_with_its_signal(impatient, members, sees):
    said = shell("if [ $DMLC_ROLE = server ]; then kill -KILL $$; fi; sleep 1000")
    sees(said)
    assert not members()


@pytest.mark.timeout(120)
def test_a_server_that_leaves_before_the_workers_is_named(impatient, members, monkeypatch):
    monkeypatch.setattr(launcher, "LEAVING", 0.5)
    said = shell("if [ $DMLC_ROLE = server ]; then exit 0; fi; sleep 1000")
    assert said == "server 0 on this machine ended, and 0.5 s later the workers had not"
    assert not members()


@pytest.mark.timeout(120)
def test_what_a_process_has_left_behind_is_ended_too(members):
    assert shell("sleep 1000 &") == ""
    assert not members()


@pytest.mark.timeout(120)
def test_the_other_workers_have_time_to_leave_their_records(tmp_path):
    shell(f'if [ "$MXOPT_WORKER" = 1 ]; then exit 3; fi; sleep 0.2; > {tmp_path}/$MXOPT_WORKER')
    assert (tmp_path / "0").exists()


@pytest.mark.timeout(120)
def test_servers_that_outstay_the_workers_are_ended(impatient, members):
    assert shell("if [ $DMLC_ROLE = server ]; then sleep 1000; fi") == ""
    assert not members()


@pytest.mark.timeout(120)
def test_what_would_control_a_terminal_is_taken_out_of_the_last_words(impatient):
    said = shell(
        r"if [ $DMLC_ROLE = server ]; then printf 'no\033[2J memory'; exit 3; fi; sleep 99"
    )
    assert said == "server 0 on this machine ended with status 3: no [2J memory"


@pytest.mark.timeout(120)
def test_everybody_gets_a_line_of_input_and_the_environment(tmp_path):
    said = shell(f'read line; echo $line $COMMON >> {tmp_path}/$DMLC_ROLE"$MXOPT_WORKER"')
    assert said == ""
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == dict.fromkeys(["scheduler", "server", "worker0", "worker1"], "input yes\n")


def test_through_ssh_the_words_arrive_as_they_were(tmp_path, monkeypatch):
    home = tmp_path / "a folder; with 'quotes'"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("MXOPT_DATA", "/some data")
    far = ROLES[-1]._replace(host="user@node")
    script = 'pwd; echo "$ODD|$MXOPT_WORKER|$MXOPT_DATA|$PORT|$DMLC_RANK"'
    *ssh, host, line = command(far, ["sh", "-c", script], {"ODD": "a b'$HOME"})
    assert (ssh[0], host) == ("ssh", "user@node")
    # What sshd does with it; the far side knows nothing of this environment.
    environment = {"PATH": "/usr/bin:/bin", "PORT": "80", "DMLC_RANK": "9"}
    said = subprocess.run(["sh", "-c", line], cwd="/", env=environment, text=True,
                          capture_output=True, check=True).stdout  # fmt: skip
    assert said.splitlines() == [str(home), "a b'$HOME|1|/some data||"]
    assert shlex.split(line)[:2] == ["cd", str(home)]


@pytest.mark.timeout(120)
def test_a_process_whose_launcher_is_gone_ends_itself():
    words = command(ROLES[0], [sys.executable, "-m", "mxopt.measure.kvstore_process"], {})
    scheduler = subprocess.Popen(words, stdin=subprocess.PIPE)
    scheduler.stdin.write(b"{}\n")
    scheduler.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        scheduler.wait(2)  # it serves
    scheduler.stdin.close()
    assert scheduler.wait() == -9
