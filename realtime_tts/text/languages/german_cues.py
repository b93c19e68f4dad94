"""Patterns for the words around a German number that say what it is."""

from __future__ import annotations

import re

DATIVE = r"\b(?i:mit|nach|vor|seit|in|aus|bei|von|zu|ab|binnen|innerhalb von)\s(?:1 \w+ und )?"
ACCUSATIVE = (
    r"\b(?i:für|ohne|um|durch|gegen|pro|habe|hast|hat|haben|habt|hatte|hatten|gibt|gab|kaufe"
    r"|dauert|dauern|erhält|erhalten|bekommt|bekommen|wiegt|spart|sparen"
    r"|kauft|kaufen|kaufte|brauche|braucht|brauchen|nehme|nimmt|nimm|trink|iss|nehmen|bestelle|bestellt|möchte"
    r"|möchten|sucht|suche|suchen|findet|esse|isst|trinke|trinkt)\s(?:1 \w+ und )?"
)
LABELS = (
    r"(?:§|\b(?:Seite|Kapitel|Gleis|Platz|Level|Teil|Stufe|Nummer|Raum|Band|Phase|Gruppe|Version|Typ"
    r"|Schritt|Klasse|Nr\.|Punkt|Note|Zimmer|Halle|Tor|Linie|Abschnitt|Spalte|Zeile|Option|Artikel|Art\.|Frage"
    r"|Runde|Aufgabe|Formel|Regel|Position|Kategorie|Kap\.|S\.|Abs\.|Absatz|Satz))\s"
)
WEAK = (
    r"\b(?i:der|die|das|jeder|jede|jedes|dieser|diese|dieses|eine|keine|meine|deine|seine|ihre"
    r"|unsere|eure|welche|welcher|welches)\s"
)
OBLIQUE = (
    r"\b(?i:dem|den|des|am|im|zum|zur|beim|vom|ins|einem|einen|einer|diesem|diesen|jedem|jeden"
    r"|meinem|meinen|meiner|seinem|seinen|seiner|ihrem|ihren|ihrer|unserem|unseren|unserer"
    r"|(?:in|aus|von|nach|mit|zu|seit|vor|bei|auf|an|während|hinter|neben|unter|über) der)\s"
)
MIXED = r"\b(?i:ein|kein|mein|dein|sein|ihr|unser|euer)\s"
KINGS = (
    "Ludwig|Friedrich|Wilhelm|Heinrich|Karl|Otto|Franz|Georg|Johannes Paul|Benedikt|Leo|Pius"
    "|Johannes|Paul|Philipp|Napoleon|Peter|Alexander|Nikolaus|Leopold|Maximilian|Rudolf|Konrad"
    "|Ferdinand|Josef|Joseph|Ramses|Gregor|Klemens|Innozenz|Richard|Eduard|Jakob|Albrecht|Gustav"
)
QUEENS = "Elisabeth|Katharina|Maria|Isabella|Christina|Margarethe|Viktoria"
CHAPTERS = "Kapitel|Teil|Band|Akt|Abschnitt|Phase|Stufe|(?:Steuerk|K)lasse|Typ|Artikel|Weltkrieg"
CODE = (
    r"(?:(?:[Nn]ummer|[Cc]ode|CVV|Endziffern?|PIN|TAN|PLZ|Passwort|Tel\.|Telefon|ID|Endung|Kto\.|BLZ)"
    r"(?: lautet| ist|:)?|(?:[Ee]ndet|[Ee]nden|[Ee]ndend|[Ee]ndung) (?:auf|mit))\s"
)
EMERGENCY = (
    r"(?:Not(?:ruf|fall)|Polizei|Feuerwehr|unter(?: der)?|[Rr]uf\w*|[Ww]ähl\w*)(?: Sie)?(?: die)?\s"
)
SCORED = (
    r"\b(?i:gew[ao]nn\w*|gewonnen|siegten?|verlor\w*|endstand|spielstand|schlug\w*)\b"
    r"[^.!?,\d]*(?<!um )(?<!bis )(?<!ab )"
)
"""Text before 24:18 that says that it is a score, and no time."""
DOTTED = "Min|Std|Sek|Stk|S|J|Pkt|Pers|Tabl|Pck|Mon"
OPENERS = (
    r"(?:Ab|Aber|Also|Am|An|Auf|Bei|Bis|Bitte|Da|Dabei|Dafür|Danach|Dann|Darum|Das|Dein|Deine|Dem|Den|Denn|Der|Deshalb"
    "|Die|Dies|Diese|Dieser|Dieses|Du|Ein|Eine|Er|Erst|Es|Falls|Für|Gern|Ich|Ihr|Ihre|Im|In|Ist|Jetzt|Kann"
    "|Können|Man|Mit|Möchten|Nach|Noch|Nun|Nur|Ob|Oder|Sie|Sind|So|Sobald|Soll|Trotzdem|Um|Und|Vom|Von|Vor"
    r"|Wann|Warum|Was|Weil|Wenn|Wer|Wie|Wir|Wo|Zu|Zum|Zuerst|Zuletzt)(?!\w)"
)
"""Words with a capital that are no nouns: behind a short unit and its stop, a sentence begins."""
OFTEN = r"(?:(?:täg|wöchent|monat|jähr)l|(?:am|pro|die|in|im)(?!\w))"
"""Words behind 3 x that say how often something is done."""
PARTS = r"\b(?:Seite|Schritt|Teil|Paket|Folge|Runde|Frage|Level|Kapitel|Punkt|Bewertung:?|Note:?)\s"
UNTIL = (
    r"\b(?:(?:HU|TÜV|EZ|MHD|[Gg]ültig bis)(?: zum| bis)?:?|[Ll]äuft(?: (?:am|im|bis|noch bis))?"
    r"|[Aa]blaufdatum:?|[Aa]blauf:?|[Gg]ültig:?|[Ee]rstzulassung:?) "
)
"""Text before the month and the year until which something is valid: 08/27."""
ON_DAY = re.compile(
    r"\b(?i:am|vom|ab|bis zum|jeden|kommenden|nächsten|diesen|letzten) \Z"
    r"|\b[A-Z][a-z]\. (?:und|u\.) \Z"
)
"""Text before So. and Fr. where they are days, and no words."""
PARAGRAPH = r"(?:§|\b(?:Abs\.|Absatz|Art\.|Artikel|Nr\.|Nummer)) ?"
"""Text before a number behind which S. is a sentence of a law."""
SINCE = r"\b(?i:am|vom|v\.|von|zum|dem|ab|bis|seit)(?: spätestens| einschließlich)?\s"
"""Text before a date that is in an oblique case."""
STREET = (
    r"(?i:str\.|straße|weg|allee|platz|gasse|ring|damm|ufer|chaussee|hof|markt)"
    r" \d{1,3} ?[a-z]?(?:[-–]\d{1,3})?, (?:D-)?"
)
"""Text before the post code of an address, whose digits are said one by one."""
SUBSECTION = re.compile(r"(?:§|\b(?:Abs\.|Absatz)) ?\d+[a-z]? \Z")
"""Text before S. where it is a sentence of a law, and no page."""
GENITIVE = re.compile(r"\bdes (?:\w+en )?\d{1,2}\. \Z")
