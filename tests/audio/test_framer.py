"""PcmFramer: whatever the pieces, the packets are the same bytes by the packet rule."""

from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.formats import PACKET_BYTES
from realtime_tts.audio.packets import PcmFramer

FRAME = 3_840  # bytes of one codec frame

pieces = st.lists(st.integers(0, 6_000).map(lambda samples: bytes(2 * samples)), max_size=12)


def packets_of(chunks: list[bytes], packet_bytes: int = PACKET_BYTES) -> list[bytes]:
    framer = PcmFramer(packet_bytes)
    packets = [packet for chunk in chunks for packet in framer.push(chunk)]
    return packets + framer.cut()


def test_the_first_packet_leaves_at_once_with_what_there_is() -> None:
    framer = PcmFramer()
    assert [len(packet) for packet in framer.push(bytes(FRAME))] == [FRAME]
    assert framer.push(bytes(FRAME)) == []
    assert [len(packet) for packet in framer.cut()] == [FRAME]


def test_a_large_first_piece_is_cut_into_full_packets() -> None:
    framer = PcmFramer()
    sizes = [len(packet) for packet in framer.push(bytes(2 * PACKET_BYTES + 100))]
    assert sizes == [PACKET_BYTES, PACKET_BYTES]
    assert [len(packet) for packet in framer.cut()] == [100]


def test_a_packet_leaves_as_soon_as_it_is_full() -> None:
    framer = PcmFramer()
    framer.push(bytes(FRAME))
    assert framer.push(bytes(PACKET_BYTES - 2)) == []
    assert [len(packet) for packet in framer.push(bytes(2))] == [PACKET_BYTES]
    assert framer.cut() == []


def test_nothing_in_is_nothing_out() -> None:
    assert packets_of([]) == []
    assert packets_of([b"", b""]) == []


@given(pieces)
def test_all_bytes_come_out_once_and_in_order(chunks: list[bytes]) -> None:
    numbered = []
    count = 0
    for chunk in chunks:
        samples = len(chunk) // 2
        numbered.append(b"".join((count + i).to_bytes(2, "little") for i in range(samples)))
        count = (count + samples) % 50_000
    assert b"".join(packets_of(numbered)) == b"".join(numbered)


@given(pieces, st.sampled_from([2, 320, 4_096]))
def test_every_packet_but_the_first_and_the_last_is_full(
    chunks: list[bytes], packet_bytes: int
) -> None:
    packets = packets_of(chunks, packet_bytes)
    assert all(0 < len(packet) <= packet_bytes for packet in packets)
    assert all(len(packet) % 2 == 0 for packet in packets)
    assert all(len(packet) == packet_bytes for packet in packets[1:-1])
