from realtime_tts.protocol.token_bucket import TokenBucket


def test_it_refills_and_holds_no_more_than_a_burst() -> None:
    bucket = TokenBucket(rate=2.0, burst=3.0)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(100.5) for _ in range(2)] == [True, False]
    assert [bucket.take(900.0) for _ in range(4)] == [True, True, True, False]


def test_who_takes_what_is_not_there_yet_waits_for_it() -> None:
    bucket = TokenBucket(rate=2.0, burst=1.0)
    assert [bucket.owe(100.0) for _ in range(3)] == [0.0, 0.5, 1.0]
    assert bucket.owe(101.0) == 0.5
    assert not bucket.take(101.0)
