"""The sockets on which services listen."""

from __future__ import annotations

import errno
import socket

BACKLOG = 1_024  # connections that the kernel accepts before the service does


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens and does not block; port 0 takes a free one. Raises OSError with the reason as `strerror`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except UnicodeError:
        raise OSError(errno.EINVAL, "this is no host name") from None
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(error.errno, "another program has this port") from None
        raise
    return made
