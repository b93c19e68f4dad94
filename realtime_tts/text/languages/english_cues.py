"""Patterns for what stands around an English number and says what it is.

All but `PART` are for the text before it, and `STREET` for the text before an abbreviation.
"""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages.rules import UNQUOTED

MONTH = (
    r"(?:/(?:1[3-9]|2\d|3[01]) (?:to|and|or)"
    r"|\b(?:[Ff]rom|[Bb]etween) \d{1,2}/\d{1,2} (?:to|and|through|until)"
    r"|\b(?:(?i:on|by|until|till|before|after|since|from|due|dated?|through|for"
    r"|w(?:ee)?k\.? of|as of|available|avail\.?|EOD|COB|effective|see you|meet me|dates?"
    r"|airs|airing|starts|starting|opens|closes|expires|ends|released)"
    r"|(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs?)?|Fri|Sat(?:ur)?|Sun)(?:day)?\.?,?):?)\s\Z"
)
RECORD = r"\b(?:[Rr]ecord(?: is| was| of)?:?|are|went)\s|['’]re\s"
"""Text before wins, losses and ties: a record of 45-12-3."""
CARD_EXPIRES = (
    r"\b(?:(?i:exp(?:iry|iration)?\.?(?: date)?(?: is| of|:)?|valid thru:?)"
    r"|(?:[Cc]ard|Visa|Mastercard|Amex)\b[^.!?]*\b[Ee]xpires)\s\(?"
)
"""Text before the month and the year of a card: expiry date 04/27."""
PART = (
    r"(?! (?:an|of|off|cups?|teaspoons?|tsp|tablespoons?|tbsp|pounds?|lbs?|ounces?|oz|pints?"
    r"|quarts?|gallons?|inch|inches|yards?|miles?|mi|hours?|hrs?|days?|price)(?!\w))"
)
"""A fraction of something, not a date."""
_SPELLED = (
    "code|PIN|OTP|passcode|password|ID|card|account|acct|ticket|case|invoice|tracking|reference|"
    "confirmation|reservation|booking|serial|ISBN|SSN|IMEI|SKU|P/N|S/N|zip|routing|policy|passport|PUK|RMA|NPI|EIN|DEA"
)
SPELLING = (
    rf"\b(?i:{_SPELLED})(?:\.? (?i:number|no\.|#|code|ID|to))?"
    r"(?: is| are|,? (?i:ending in|ends in))?"
    r"[:#]?\s?#?\s?|\b(?:ending|ends)(?: in)?\s|#\s?|\*-?|[xX]{2,}-?|[xX]{4} |•{2,}[ -]?|-{2,}"
    r"|(?:\A|\s)(?:\.{3}|…)"
    r"|\b(?i:te?xt) \w+ to\s"
    r"|\b(?i:(?:your|my|the|this|our) (?:order|claim)|order (?:number|no\.|#)(?: is|:)?)\s#?"
    r"|\border #|\b(?:Visa|Mastercard|Amex)\s"
    r"|\b(?i:(?:member|customer|licen[sc]e|patient|employee|student) (?:number|no\.|#)(?: is|:)?)\s"
)
PAIRED = (
    r"(?:\b(?i:rooms?|rm\.?|suite|ste\.?|apt\.?|apartment|flight|gate|bus|route|highway|hwy\.?|interstate|"
    r"extension|ext\.?|error|status|port|channel|form|section|boeing|exit|box|unit)\s"
    r"|\b(?!AD|BC|CE|TO|IN|OF|AT)[A-Z]{2,4}[ -]|\b[A-Z][.-]|localhost:)\Z"
)
ROAD = r"\b(?:[A-Z]{1,2}-|(?:I|US|SR|(?i:rte\.?|rt\.?|route|highway|hwy\.?|interstate|exit)) )\Z"
PLACED = (
    r"\b(?i:seats?|gates?|rows?|routes?|rte\.?|exits?|highway|hwy\.?|terminals?|platform|pier|bus"
    r"|flat|apt\.?|apartment|unit|rooms?|suite|ste\.?|form|line|stand|zone|bay)\s"
)
"""Text before a number whose letter is no unit: Route 9W, seat 14L."""
STATE = rf"(?:\b(?:{'|'.join(say.STATES)})|(?i:\bzip(?: code)?(?: is|:)?))\s\Z"
COUNTED = (
    r"(?=\+?[ -](?:people|users?|customers?|followers?|subscribers?|members?|visitors?|viewers?"
    r"|listeners|residents|inhabitants|views|visits|downloads|installs|clicks|likes|streams|tokens?"
    r"|params?|parameters?|requests?|messages|emails|calls|events|records|rows|entries|documents"
    r"|transactions|orders|steps|words|results|units|copies|accounts|households|jobs|miles|points"
    r"|dollars|euros|active|monthly|daily|weekly|paying|registered)(?!\w)"
    r"|/(?:s|sec|min|h|hr|hour|day|wk|week|mo|month|yr|year|user|person)(?!\w))"
)
"""What is counted in thousands and more: 3M users, unlike 3M tape."""
DECADE = re.compile(
    r"(?:\b(?i:the|his|her|their|my|your|our|late|early|mid|upper|lower|low|high)\s?"
    r"|[-–]\s?|['’]\s?|(?:\A|[.;!?])\s?)\Z"
)
RELEASES = (
    r"(?:\b(?:Python|Ubuntu|Node|PHP|Java|Ruby|Django|Go|Rust|Kubernetes|Debian|macOS|iOS)|"
    r"\b[Vv]ersion)\s\Z|\bv\Z"
)
ADJECTIVE = (
    r"\A(?=(?s:.*)\b(?i:an?|another|the|this|that|my|your|our|his|her|each|every|one)\s\Z)"
    + UNQUOTED
)
"""Text before a length that is an adjective: a 65" TV."""

STEP = (
    r"\b(?i:pages?|steps?|questions?|laps?|slides?|parts?|levels?|episodes?|rounds?|chapters?"
    r"|holes?|tasks?)\s"
)
"""Text before a number of some in all: page 3/12."""
BOOK = (
    r"\b(?:Genesis|Exodus|Isaiah|Psalms?|Proverbs|Matthew|Mark|Luke|John|Acts|Romans|Galatians"
    r"|Corinthians|Ephesians|Philippians|Hebrews|James|Revelation|Surah|Quran)\s"
)
"""Text before chapter and verse: John 3:16."""
SCORED = (
    r"\b(?i:won|wins?|beat|beats|lost|lose|leads?|led|leading|up|down|ahead|scored?|final|victory"
    r"|defeat(?:ed)?|trail(?:s|ing|ed)?)\b[^.!?]*"
)
"""Text before 24-7 that says that it is a score."""

STREET = re.compile(
    r"(?:\b(?:\d+\w*|(?i:on|onto|off|along|down|past|near|from|to|take)) "
    r"(?:[NSEW]\. )?(?:[A-Z][a-z]+ ){1,3}|\d(?:st|nd|rd|th) |\b(?:Main|Wall) )"
    r"(?<!Mount )(?<!Port )(?<!Lake )(?<!Fort )(?<!East )(?<!Downtown )(?<!day )\Z"
)
"""Text before Street or Drive where a capital follows: on Oak Dr. She, not Ask Dr. Lee."""

RATIO = (
    r"\b(?:[Mm]ix(?: at)?|(?i:ratio|scale)(?: (?:of|is|was))?|(?i:diluted)|dilution of"
    r"|odds (?:of|are))\s\Z"
)
"""Text before 1:20 that says that it is no time."""
