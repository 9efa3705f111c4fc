"""`PFUNGST_OFFLINE=1`: nothing leaves this machine, whoever wants to send it."""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any

from pfungst.core.errors import PfungstError

VARIABLE = "PFUNGST_OFFLINE"
THEIRS = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
"""What other packages call the same."""

_guarded = False


class Offline(PfungstError):
    """Something wanted to reach another machine, and may not."""


def offline() -> bool:
    """Whether the user forbids connections to other machines."""
    return os.environ.get(VARIABLE, "").strip().lower() not in ("", "0", "no", "false", "off")


def stay_offline() -> None:
    """Where the user wants it: refuse every connection of this process, and of those it starts, but to itself.

    Python tells of every connection and every look-up of a name before it is made. What is refused raises Offline.
    """
    global _guarded
    if not offline() or _guarded:
        return
    _guarded = True
    for name in THEIRS:
        os.environ[name] = "1"
    sys.addaudithook(_refuse)


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    if host.strip("[]").lower() in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refused(place: str) -> Offline:
    return Offline(f"{place} would have to be reached, but {VARIABLE} is set: nothing leaves this machine.")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        # The address of a Unix socket is text or bytes, of the network a tuple that begins with the host.
        if isinstance(address, tuple) and address and isinstance(address[0], str) and not is_here(address[0]):
            raise refused(address[0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        if isinstance(host, str) and not is_here(host) and host != os.uname().nodename:
            raise refused(host)
