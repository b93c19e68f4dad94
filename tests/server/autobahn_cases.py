"""The cases of the Autobahn test suite (autobahntestsuite 25.10.1), by its numbers: what is sent,
and what has to come back of a server that echoes.

The suite itself does not start on Python 3. Cases of compression (12.*, 13.*) need an extension
that the server does not offer; `test_autobahn.py` tests that it does not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tests.server.autobahn_utf8 import GREEK, SEQUENCES
from tests.server.peers import frame_bytes

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, PROTOCOL_ERROR, INVALID_DATA, TOO_BIG = 1000, 1002, 1007, 1009
DROPPED = 1006
"""No close frame comes before the end."""
PAUSE = b""
"""Between two sends: nothing may come back in it."""

Frame = tuple[int, bytes]


@dataclass(frozen=True)
class Case:
    """`sends`: what is written, each by itself. `back`: the frames that come, in order. `closes`:
    the code of the server's close, which comes by itself unless it is `NORMAL`: then the peer
    closes, unless it has. `may_lose`: the frames of `back` need not come (NON-STRICT there): what
    came with a broken frame in one read is dropped with it."""

    number: str
    sends: tuple[bytes, ...]
    back: tuple[Frame, ...] = ()
    closes: tuple[int, ...] = (NORMAL,)
    may_lose: bool = False
    has_closed: bool = False


frame = partial(frame_bytes, mask=b"\x37\xfa\x21\x3d")


def fragments(opcode: int, *parts: bytes) -> tuple[bytes, ...]:
    """One message, a frame for each part."""
    last = len(parts) - 1
    kinds = (opcode, *(CONT for _ in parts[1:]))
    return tuple(
        frame(kind, part, fin=at == last)
        for at, (kind, part) in enumerate(zip(kinds, parts, strict=True))
    )


def close(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason)


def octets(*sends: bytes) -> tuple[bytes, ...]:
    """Each octet by itself."""
    return tuple(bytes([octet]) for octet in b"".join(sends))


def pieces(data: bytes, size: int) -> tuple[bytes, ...]:
    return tuple(data[at : at + size] for at in range(0, len(data), size))


def together(*sends: bytes) -> tuple[bytes, ...]:
    return (b"".join(sends),)


HELLO = b"Hello, world!"
BROKEN = (PROTOCOL_ERROR,)
_PARTS = (b"fragment1", b"fragment2", b"fragment3", b"fragment4", b"fragment5")


def framing() -> Iterator[Case]:
    """1: messages of all lengths, text and binary; the eighth in chops of 997 octets."""
    sizes = (0, 125, 126, 127, 128, 65_535, 65_536, 65_536)
    for section, opcode, octet in ((1, TEXT, b"*"), (2, BINARY, b"\xfe")):
        for at, size in enumerate(sizes, 1):
            sent = frame(opcode, octet * size)
            sends = pieces(sent, 997) if at == 8 else (sent,)
            yield Case(f"1.{section}.{at}", sends, ((opcode, octet * size),))


def pings() -> Iterator[Case]:
    """2: pings and pongs."""
    full = b"\xfe" * 125
    for at, payload in enumerate(
        (b"", b"Hello, world!", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", full)
    ):
        yield Case(f"2.{at + 1}", (frame(PING, payload),), ((PONG, payload),))
    yield Case("2.5", (frame(PING, b"\xfe" * 126),), closes=BROKEN)
    yield Case("2.6", octets(frame(PING, full)), ((PONG, full),))
    yield Case("2.7", (frame(PONG), PAUSE))
    yield Case("2.8", (frame(PONG, b"unsolicited pong payload"), PAUSE))
    sends = (frame(PONG, b"unsolicited pong payload"), frame(PING, b"ping payload"))
    yield Case("2.9", sends, ((PONG, b"ping payload"),))
    payloads = tuple(b"payload-%d" % at for at in range(10))
    ten = tuple(frame(PING, payload) for payload in payloads)
    answers = tuple((PONG, payload) for payload in payloads)
    yield Case("2.10", ten, answers)
    yield Case("2.11", octets(*ten), answers)


def reserved_bits() -> Iterator[Case]:
    """3: RSV bits, which no extension has given a meaning."""
    hello, ping = frame(TEXT, HELLO), frame(PING)
    yield Case("3.1", (frame(TEXT, HELLO, rsv=1),), closes=BROKEN)
    for number, rsv in (("3.2", 2), ("3.3", 3), ("3.4", 4)):
        sends = (hello, frame(TEXT, HELLO, rsv=rsv), ping)
        how = {"3.2": together(*sends), "3.3": sends, "3.4": octets(*sends)}[number]
        yield Case(number, how, ((TEXT, HELLO),), BROKEN, may_lose=True)
    yield Case("3.5", (frame(BINARY, b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", rsv=5),), closes=BROKEN)
    yield Case("3.6", (frame(PING, HELLO, rsv=6),), closes=BROKEN)
    yield Case("3.7", (frame(CLOSE, rsv=7),), closes=BROKEN)


def opcodes() -> Iterator[Case]:
    """4: opcodes that are reserved, of data frames and of control frames."""
    hello, ping = frame(TEXT, HELLO), frame(PING)
    for section, first in ((1, 3), (2, 11)):
        yield Case(f"4.{section}.1", (frame(first),), closes=BROKEN)
        yield Case(f"4.{section}.2", (frame(first + 1, b"reserved opcode payload"),), closes=BROKEN)
        for at, payload in ((3, b""), (4, HELLO), (5, HELLO)):
            sends = (hello, frame(first + at - 1, payload), ping)
            how = octets(*sends) if at == 5 else sends
            yield Case(f"4.{section}.{at}", how, ((TEXT, HELLO),), BROKEN, may_lose=True)


def fragmentation() -> Iterator[Case]:
    """5: messages in fragments, control frames between them, and fragments of nothing."""
    yield Case("5.1", fragments(PING, *_PARTS[:2]), closes=BROKEN)
    yield Case("5.2", fragments(PONG, *_PARTS[:2]), closes=BROKEN)
    two, joined = fragments(TEXT, *_PARTS[:2]), b"".join(_PARTS[:2])
    yield Case("5.3", together(*two), ((TEXT, joined),))
    yield Case("5.4", two, ((TEXT, joined),))
    yield Case("5.5", octets(*two), ((TEXT, joined),))
    mixed = together(two[0], frame(PING, b"ping payload"), two[1])
    apart = (two[0], frame(PING, b"ping payload"), two[1])
    both = ((PONG, b"ping payload"), (TEXT, joined))
    yield Case("5.6", mixed, both)
    yield Case("5.7", apart, both)
    yield Case("5.8", octets(*apart), both)
    for first, fin in ((9, True), (12, False)):
        wrong = (frame(CONT, b"non-continuation payload", fin=fin), frame(TEXT, HELLO))
        for at, sends in enumerate((together(*wrong), wrong, octets(*wrong))):
            yield Case(f"5.{first + at}", sends, closes=BROKEN)
    more = (frame(CONT, _PARTS[2], fin=False), frame(TEXT, _PARTS[3]))
    yield Case("5.15", together(*two, *more), ((TEXT, joined),), BROKEN, may_lose=True)
    for number, fin in (("5.16", False), ("5.17", True)):
        once = (frame(CONT, _PARTS[0], fin=fin), *fragments(TEXT, *_PARTS[1:3]))
        yield Case(number, once * 2, closes=BROKEN)
    yield Case("5.18", (frame(TEXT, _PARTS[0], fin=False), frame(TEXT, _PARTS[1])), closes=BROKEN)
    five = fragments(TEXT, *_PARTS)
    first_ping, second_ping = frame(PING, b"pongme 1!"), frame(PING, b"pongme 2!")
    back = ((PONG, b"pongme 1!"), (PONG, b"pongme 2!"), (TEXT, b"".join(_PARTS)))
    sends = (*five[:2], first_ping, *five[2:4], second_ping, five[4])
    yield Case("5.19", (b"".join(sends[:3]), b"".join(sends[3:])), back)
    yield Case("5.20", sends, back)


_SURROGATE = GREEK + b"\xed\xa0\x80" + b"edited"
_TOO_HIGH = GREEK + b"\xf4\x90\x80\x80" + b"edited"  # wrong from the octet 0x90 on


def utf8() -> Iterator[Case]:
    """6.1 to 6.4: text, valid and not, in fragments."""
    yield Case("6.1.1", (frame(TEXT),), ((TEXT, b""),))
    yield Case("6.1.2", fragments(TEXT, b"", b"", b""), ((TEXT, b""),))
    middle = b"middle frame payload"
    yield Case("6.1.3", fragments(TEXT, b"", middle, b""), ((TEXT, middle),))
    text = "Hello-µ@ßöäüàá-UTF-8!!".encode()
    yield Case("6.2.1", (frame(TEXT, text),), ((TEXT, text),))
    yield Case("6.2.2", fragments(TEXT, text[:12], text[12:]), ((TEXT, text),))
    yield Case("6.2.3", fragments(TEXT, *octets(text)), ((TEXT, text),))
    yield Case("6.2.4", fragments(TEXT, *octets(GREEK)), ((TEXT, GREEK),))
    yield Case("6.3.1", (frame(TEXT, _SURROGATE),), closes=(INVALID_DATA,))
    yield Case("6.3.2", fragments(TEXT, *octets(_SURROGATE)), closes=(INVALID_DATA,))


def fail_fast() -> Iterator[Case]:
    """6.4: the connection fails with the fragment that is wrong. The third never comes here: the
    outcome is OK, not NON-STRICT. Of one frame (6.4.3, 6.4.4) nothing is looked at before it is
    whole: NON-STRICT, so there all of it is sent."""
    for number, second, third in (("6.4.1", 11, 15), ("6.4.2", 12, 13)):
        parts = fragments(TEXT, _TOO_HIGH[:second], _TOO_HIGH[second:third], _TOO_HIGH[third:])
        yield Case(number, (parts[0], PAUSE, parts[1]), closes=(INVALID_DATA,))
    whole = frame(TEXT, _TOO_HIGH)
    head = len(whole) - len(_TOO_HIGH)
    for number, second, third in (("6.4.3", 11, 15), ("6.4.4", 12, 13)):
        cut, again = head + second, head + third
        sends = (whole[:cut], PAUSE, whole[cut:again], PAUSE, whole[again:])
        yield Case(number, sends, closes=(INVALID_DATA,))


def sequences() -> Iterator[Case]:
    """6.5 to 6.23: Markus Kuhn's stress test of UTF-8 decoders, each as one text message."""
    for section, texts in sorted(SEQUENCES.items(), key=lambda item: float(item[0][2:])):
        for at, (valid, text) in enumerate(texts, 1):
            number, sends = f"{section}.{at}", (frame(TEXT, text),)
            if valid:
                yield Case(number, sends, ((TEXT, text),))
            else:
                yield Case(number, sends, closes=(INVALID_DATA,))


def closing() -> Iterator[Case]:
    """7: the closing handshake; what comes behind a close is not answered."""
    hello, ping = frame(TEXT, b"Hello World!"), frame(PING)
    yield Case("7.1.1", (hello,), ((TEXT, b"Hello World!"),))
    behind = {"7.1.2": frame(CLOSE), "7.1.3": ping, "7.1.4": hello}
    for number, late in behind.items():
        yield Case(number, (close(NORMAL), late), has_closed=True)
    first, second = fragments(TEXT, *_PARTS[:2])
    # The suite wants 1000. websockets takes a close within a message for an error, and the suite
    # notes "wrong code" for that; the connection ends properly in both cases.
    yield Case("7.1.5", (first, close(NORMAL), second), closes=BROKEN)
    large = b"BAsd7&jh23" * (256 * 1024 // 10)
    # Informational: whether what came right before the close is answered, is up to the server.
    sends = (frame(TEXT, large), hello, close(NORMAL), ping)
    back = ((TEXT, large), (TEXT, b"Hello World!"))
    yield Case("7.1.6", sends, back, may_lose=True, has_closed=True)
    yield Case("7.3.1", (frame(CLOSE),), closes=(1005,), has_closed=True)
    yield Case("7.3.2", (frame(CLOSE, b"a"),), closes=BROKEN)
    reasons = {"7.3.3": b"", "7.3.4": b"Hello World!", "7.3.5": b"*" * 123}
    for number, reason in reasons.items():
        yield Case(number, (close(NORMAL, reason),), has_closed=True)
    yield Case("7.3.6", (close(NORMAL, b"*" * 124),), closes=BROKEN)
    yield Case("7.5.1", (close(NORMAL, _SURROGATE),), closes=(INVALID_DATA,))
    valid = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)
    for at, code in enumerate(valid, 1):
        yield Case(f"7.7.{at}", (close(code),), closes=(code,), has_closed=True)
    for at, code in enumerate((0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999), 1):
        yield Case(f"7.9.{at}", (close(code),), closes=BROKEN)
    # Informational there: no specification says what is to come.
    for at, code in enumerate((5000, 65_535), 1):
        yield Case(f"7.13.{at}", (close(code),), closes=BROKEN)


KIB, MIB = 2**10, 2**20
_SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB)
_FRAGMENTS = (64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)


@dataclass(frozen=True)
class Large:
    """A case with a large message, which is made when it is run: all of them together take seconds
    and hundreds of megabytes. The message is `size` times `octet`, in fragments of `part` octets;
    its octets are sent `chop` at a time."""

    number: str
    opcode: int
    octet: bytes
    size: int
    part: int | None = None
    chop: int | None = None
    closes: int = NORMAL

    def case(self) -> Case:
        message = self.octet * self.size
        parts = pieces(message, self.part) if self.part else (message,)
        (sent,) = together(*fragments(self.opcode, *parts))
        back = ((self.opcode, message),) if self.closes == NORMAL else ()
        sends = pieces(sent, self.chop) if self.chop else (sent,)
        return Case(self.number, sends, back, (self.closes,))


def limits() -> Iterator[Large]:
    """9.1 to 9.6: large messages. Up to `max_frame_bytes` (1 MiB) they are echoed; larger
    ones fail with 1009, which the suite counts as a failure and a server of short messages wants.
    Of messages in very many fragments the socket is dropped."""
    for section, opcode, octet in ((1, TEXT, b"*"), (2, BINARY, b"\xfe")):
        for at, size in enumerate(_SIZES, 1):
            closes = NORMAL if size <= MIB else TOO_BIG
            yield Large(f"9.{section}.{at}", opcode, octet, size, closes=closes)
        for at, part in enumerate(_FRAGMENTS, 1):
            number = f"9.{section + 2}.{at}"
            closes = DROPPED if part < 4 * KIB else TOO_BIG
            yield Large(number, opcode, octet, 4 * MIB, part, closes=closes)
            if 4 * KIB <= part <= MIB:
                yield Large(f"{number}-1M", opcode, octet, MIB, part)
        for at, chop in enumerate((64, 128, 256, 512, KIB, 2 * KIB), 1):
            yield Large(f"9.{section + 4}.{at}", opcode, octet, MIB, chop=chop)


def fragmented() -> Iterator[Case]:
    """10: a message in fragments that do not divide it."""
    text = b"*" * 65_536
    yield Case("10.1.1", fragments(TEXT, *pieces(text, 1_300)), ((TEXT, text),))


ROUND_TRIPS = [
    (f"9.{section}.{at}", opcode, size)
    for section, opcode in ((7, TEXT), (8, BINARY))
    for at, size in enumerate((0, 16, 64, 256, KIB, 4 * KIB), 1)
]
"""1,000 messages of this size, each sent when the one before has come back."""

CASES = [
    case
    for section in (
        framing,
        pings,
        reserved_bits,
        opcodes,
        fragmentation,
        utf8,
        fail_fast,
        sequences,
        closing,
        fragmented,
    )
    for case in section()
]
