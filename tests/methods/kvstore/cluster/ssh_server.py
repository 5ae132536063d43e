"""An ssh server for tests: ``python ssh_server.py FOLDER`` with asyncssh.

It makes a host key and a key for its only user in the folder, listens at a free port on every
address of this machine, prints the port, and runs what it is asked to run in sessions of their own.
"""

import asyncio
import sys
from pathlib import Path

import asyncssh


async def run(process):
    """Run the command with the connection as its input and outputs; end it with the connection."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_shell(
        process.command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
    code = await child.wait()
    await process.stdout.drain()
    if code < 0:
        process.exit_with_signal("KILL")
    else:
        process.exit(code)


async def main(folder: Path) -> None:
    """Serve until killed."""
    for name in ("host", "user"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(folder / name))
        key.write_public_key(str(folder / f"{name}.pub"))
    (folder / "user").chmod(0o600)
    server = await asyncssh.create_server(
        asyncssh.SSHServer, "0.0.0.0", 0, server_host_keys=[str(folder / "host")], encoding=None,
        authorized_client_keys=str(folder / "user.pub"), process_factory=run,
    )  # fmt: skip
    print(server.get_port(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
