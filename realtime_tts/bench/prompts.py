"""What the load generator asks the server to say.

Fixed texts of the kinds a voice agent speaks, from two words to about fifteen seconds, so that
two runs can be compared. Written for this project.
"""

from __future__ import annotations

PROMPTS: tuple[str, ...] = (
    "One moment.",
    "Yes, of course.",
    "Sure, let me look that up for you.",
    "Your appointment is on Tuesday at half past nine.",
    "I found three flights that leave before noon. Shall I read them to you?",
    "The library closes at six today, but the reading room stays open until eight.",
    "Turn left at the second light, then keep going until you see the bridge on your right.",
    "That card was declined. Would you like to try another one, or pay when you pick it up?",
    "It will be mostly sunny in the morning, with a light breeze from the west and a few clouds "
    "after lunch.",
    "I have moved the meeting to Thursday and told everyone. Anna cannot come, so I asked her to "
    "send her notes the day before.",
    "To reset the router, hold the small button on the back for ten seconds. The lights will go "
    "out, then blink green. When they stop blinking, try your connection again.",
    "The old harbour is worth a visit in the evening. The boats come back around seven, the fish "
    "market opens shortly after, and there is nearly always somebody playing music by the wall.",
    "Before we start, a short word about how this works. I will ask you five questions. Take your "
    "time with each of them. If something is not clear, say so and I will put it another way. "
    "Nothing you say leaves this call unless you tell me that it may.",
    "Once upon a time there was a clock that ran a little too fast. Every day it gained a minute, "
    "and every night the keeper turned it back. One winter he fell ill, and by spring the whole "
    "village had breakfast at four in the morning without knowing why.",
)
"""Texts of many lengths, sorted by them."""
