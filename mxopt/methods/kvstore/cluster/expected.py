"""What to expect of a cluster, on paper: bytes on the wire against arithmetic.

In every step a worker pushes its gradients, four bytes a parameter, and pulls as many of their sum.
With one worker on each of h hosts and servers on s of them, sharing the parameters evenly, the
card of a host with a server sends

    4 P (s - 1) / s      as a worker, to the servers of other hosts, and
    4 P (h - 1) / s      as a server, its share of the sum to the workers of other hosts,

and receives as much; a card does both at once. A server on every host makes it 8 P (h - 1) / h,
which is what a ring of all-reduce sends as well (Patarasuk and Yuan, "Bandwidth Optimal All-reduce
Algorithms", 2009). Latency, protocol and the servers' additions come on top.

Gradients are sent as soon as the backward pass has made them, so a step takes between
max(computing, sending), if all of it overlaps, and computing + sending, if nothing does.
"""

from __future__ import annotations

from typing import NamedTuple

GIGABITS = (1, 10, 25, 100)
HOSTS = (2, 8, 32)
# Operations a second that a worker is taken to sustain: 40 % of the 15.7e12 that NVIDIA gives for a
# V100 in float32. Put your own in: `samples_per_second` of one process says what it is.
SPEED = 6.3e12


class Work(NamedTuple):
    """A worker's step.

    Attributes:
        name: of the network, and what it takes in a step.
        parameters: that learn.
        operations: multiplications and additions, three times those of the forward pass: the
            backward pass has two products for each of its products.
    """

    name: str
    parameters: int
    operations: float


# The chapter's networks and batches. DeepLab's convolutions take 218,159,833,088 products an image;
# of the Transformer's matrices each takes a product a parameter and token.
WORKS = (
    Work("DeepLabv3-ResNet-101, 4 images of 480 px", 58_749_890, 6 * 4 * 218_159_833_088),
    Work("transformer_en_de_512, 4,096 tokens a side", 62_979_002, 6 * 4096 * 62_979_002),
)


def host_bytes(parameters: int, hosts: int, servers: int | None = None) -> float:
    """Return the bytes that the busiest card sends in a step, and receives as well.

    Args:
        parameters: float32 numbers that learn.
        hosts: with one worker each.
        servers: hosts with a server; all of them if not given.
    """
    servers = servers or hosts
    return 4 * parameters * ((servers - 1) + (hosts - 1)) / servers


def exchange_seconds(work: Work, hosts: int, gigabits: float) -> float:
    """Return how long a step's bytes take on cards of so many 10^9 bits a second."""
    return 8 * host_bytes(work.parameters, hosts) / (gigabits * 1e9)


def times_faster(work: Work, hosts: int, gigabits: float) -> tuple[float, float]:
    """Return how many times the samples of one worker the hosts train in a second: if nothing of
    sending and computing overlaps, and if all does. Each worker's batch stays as it is."""
    computing = work.operations / SPEED
    sending = exchange_seconds(work, hosts, gigabits)
    return hosts * computing / (computing + sending), hosts * computing / max(computing, sending)


def table(works=WORKS) -> str:
    """Return how many times faster several hosts are, by network and card, as Markdown."""
    columns = ["network", "computing", "hosts", "sent a step", *(f"{g} Gbit/s" for g in GIGABITS)]
    rows = [columns, ["---"] * len(columns)]
    for work in works:
        for hosts in HOSTS:
            found = (times_faster(work, hosts, gigabits) for gigabits in GIGABITS)
            rows.append([
                work.name,
                f"{work.operations / SPEED:.2f} s",
                str(hosts),
                f"{host_bytes(work.parameters, hosts) / 1e6:,.0f} MB",
                *(f"{low:.1f} to {high:.1f}" for low, high in found),
            ])  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
