"""ApiVersions: every version, wrong client names, and versions nobody knows."""

from __future__ import annotations

import struct

from barnabas.protocol.codec import decode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.differential.plain import plain
from tests.differential.talk import Talk
from tests.differential.wire import KEYS, ConnectionEnded, framed, request_header

SOFTWARE = {
    "empty name": ("", "1.0"),
    "empty version": ("client", ""),
    "a name with a space": ("a client", "1.0"),
    "a name with a slash": ("a/client", "1.0"),
    "a name that starts with a dash": ("-client", "1.0"),
    "a name of one letter": ("c", "1"),
    "a long name": ("c" * 300, "1.0"),
}


def api_versions_valid(talk: Talk) -> None:
    for version in talk.versions_of("ApiVersions"):
        talk.ask("named", ApiVersionsRequest(client_software_name="kio", client_software_version="0.6"), version)
        talk.ask(
            "again on the same connection", ApiVersionsRequest(client_software_name="kio", client_software_version="0.6"), version
        )


def api_versions_names(talk: Talk) -> None:
    for case, (name, software_version) in SOFTWARE.items():
        answer = talk.ask(case, ApiVersionsRequest(client_software_name=name, client_software_version=software_version), 3)
        assert answer is None or answer.error_code in (0, 42)
    talk.ask("connection lives", MetadataRequest(topics=[]), 1)


def api_versions_unknown(talk: Talk) -> None:
    """An unknown version is answered in version 0, and the connection lives on."""
    for version in (5, 99, 32767, -1):
        line = talk.connect()
        for turn in ("first", "second"):
            header = request_header(KEYS["ApiVersions"], version, 7, flexible=True)
            line.socket.sendall(framed(header + b"\x04kio\x040.6\x00"))
            step = f"version {version}, {turn} time"
            try:
                frame = line.receive_frame()
            except ConnectionEnded:
                talk.note(step, "<connection closed>")
                break
            (correlation_id,) = struct.unpack_from(">i", frame)
            answer = decode(ApiVersionsResponse, 0, frame, 4)
            talk.note(step, {"correlation_id": correlation_id, **talk.normalise(plain(answer, 0))})
        else:
            talk.ask(f"metadata after version {version}", MetadataRequest(topics=[]), 1, on=line)
