import contextlib
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import psutil
import pytest
from real import REAL

# What stands in for ssh: it takes the host off the words and runs the rest in a session of its own,
# as sshd would; nothing but its standard input and output reaches what it runs.
STAND_IN = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
host=$1; shift
exec {inside} setsid -w sh -c "$1"
"""


# ssh itself, to a server of asyncssh's on this machine.
SSH = """#!/bin/sh
exec {ssh} -p {port} -i {folder}/user -o StrictHostKeyChecking=no \\
  -o UserKnownHostsFile={folder}/known "$@"
"""


@pytest.fixture(params=["sessions", "network namespaces", "ssh"])
def hosts(request, tmp_path, monkeypatch, members):
    """Yield two hosts.

    They are sessions of this machine, or network namespaces with a cable between them where these
    can be made, both with a replacement of ssh; or hosts reached by ssh itself.
    """
    with contextlib.ExitStack() as stack:
        program = tmp_path / "bin" / "ssh"
        program.parent.mkdir()
        names = ["127.0.0.1", "127.0.0.2"]
        if request.param == "sessions":
            text = STAND_IN.format(inside="")
        elif request.param == "ssh":
            text = stack.enter_context(ssh_to_here(program.parent))
        else:
            names, inside = stack.enter_context(namespaces())
            text = STAND_IN.format(inside=inside)
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        yield names


@contextlib.contextmanager
def ssh_to_here(folder):
    """Serve ssh on this machine; yields a script that is ssh with the user's key."""
    python, ssh = REAL / "mpich" / "bin" / "python", shutil.which("ssh")
    if not python.exists() or not ssh:
        pytest.skip("no ssh, or no server for it: make test-cluster")
    words = [python, Path(__file__).with_name("ssh_server.py"), folder]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield SSH.format(ssh=ssh, port=server.stdout.readline().strip(), folder=folder)
        finally:
            server.kill()


@contextlib.contextmanager
def namespaces():
    """Two network namespaces named after their addresses, a pair of virtual cards between them."""
    net = f"10.{os.getpid() % 200 + 20}.77"
    names = [f"{net}.1", f"{net}.2"]
    cards = [f"mx{uuid.uuid4().hex[:8]}{end}" for end in "ab"]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", cards[0], "netns", names[0], "type", "veth",
               "peer", "name", cards[1], "netns", names[1])  # fmt: skip
            for name, card in zip(names, cards):
                ip("-n", name, "addr", "add", f"{name}/24", "dev", card)
                ip("-n", name, "link", "set", card, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", error)
            pytest.skip(f"no network namespaces can be made here: {said}")
        yield names, 'ip netns exec "$host"'
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def members(monkeypatch):
    """Return a function that finds the processes of this test's jobs, or one worker's."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("MXOPT_TEST_JOB", mark)

    def found(worker=None):
        processes = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                own = process.environ()
                mine = own.get("MXOPT_TEST_JOB") == mark and "DMLC_ROLE" in own
                if mine and worker in (None, own.get("MXOPT_WORKER")):
                    processes.append(process)
        return processes

    return found
