"""Offsets before and after text was changed."""

from __future__ import annotations

from realtime_tts.text.spans import OffsetMap, Piece, PieceMap


def joined(*pieces: Piece) -> PieceMap:
    result = PieceMap()
    for piece in pieces:
        result.add(piece)
    return result


def test_one_to_one_pieces_map_character_by_character() -> None:
    pieces = joined(Piece("ab", 2, 4), Piece("c", 4, 5), Piece("de", 8, 10))
    assert [pieces.source_offset(count) for count in range(7)] == [0, 3, 4, 5, 9, 10, 10]
    assert [pieces.source_start(index) for index in range(-1, 6)] == [None, 2, 3, 4, 8, 9, None]


def test_a_replaced_piece_counts_when_it_is_complete() -> None:
    pieces = joined(Piece("a", 0, 1), Piece(", ", 1, 2), Piece("b", 2, 3))
    assert [pieces.source_offset(count) for count in range(5)] == [0, 1, 1, 2, 3]
    assert [pieces.source_start(index) for index in range(4)] == [0, 1, 1, 2]


def test_an_empty_map_has_no_characters() -> None:
    assert PieceMap().source_offset(3) == 0
    assert PieceMap().source_start(0) is None


def test_removed_characters_belong_to_the_one_before() -> None:
    offsets = OffsetMap()
    for after, before in ((1, 1), (1, 2), (1, 3), (2, 4), (3, 6)):
        offsets.mark(after, before)
    assert [offsets.before(after) for after in range(5)] == [0, 3, 4 + 0, 6, 7]
