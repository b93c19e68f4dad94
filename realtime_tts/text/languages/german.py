"""German."""

from __future__ import annotations

from realtime_tts.text.languages import (
    german_cues,
    german_dates,
    german_numerals,
    german_rules,
    tables,
)
from realtime_tts.text.languages.german_words import (
    MONTHS,
    cardinal,
    count,
    date,
    ordinal,
    stem,
    time,
    year,
)
from realtime_tts.text.languages.language import Currency, Kind, Language, Noun

_NUMBERED = (
    "Haus Rechnungs Kunden Vertrags Sendungs Auftrags Policen Schaden Zähler Konto Telefon Steuer"
    " Vorgangs Ticket Ruf Bestell Artikel Mitglieds Versicherungs Buchungs Serien Handy Liefer"
)
_LAWS = (
    "BGB HGB StGB StPO ZPO GG AO EStG UStG SGB InsO VwGO VwVfG DSGVO AktG GmbHG BauGB WEG FamFG"
    " BetrVG KSchG StVO StVG ArbZG BUrlG UrhG OWiG"
)
_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Dr Doktor|Prof Professor|Hr Herr|Hrn Herrn|Fr Frau|St Sankt|Fa Firma|Dipl.-Ing"
        " Diplomingenieur",
        Kind.PHRASE: "z.B zum Beispiel|Z.B Zum Beispiel"
        "|d.h das heißt|u.a unter anderem|i.d.R in der Regel"
        "|z.T zum Teil|u.U unter Umständen|v.a vor allem|m.E meines Erachtens|s.o siehe oben"
        "|s.u siehe unten|z.Zt zur Zeit|z.Hd zu Händen|i.A im Auftrag|o.g oben genannt"
        "|i.H.v in Höhe von"
        "|ca circa|bzw beziehungsweise|vgl vergleiche|rd rund|inkl inklusive|exkl exklusive"
        "|zzgl zuzüglich|evtl eventuell|ggf gegebenenfalls|bspw beispielsweise|bzgl bezüglich"
        "|lt laut|geb geboren|gest gestorben|vs versus|zzt zurzeit|Tel Telefon|gem gemäß"
        "|Abs Absatz|p.a pro Jahr|u und|zw zwischen|ggü gegenüber|insb insbesondere|sog sogenannte"
        "|Erw Erwachsene|tgl täglich|Temp Temperatur|Urt Urteil"
        "|i.V.m in Verbindung mit|geschl geschlossen|mtl monatlich|jährl jährlich|erb erbaut"
        "|Tabl Tabletten"
        "|Nr Nummer|Art.-Nr Artikelnummer|Best.-Nr Bestellnummer|Kd.-Nr Kundennummer"
        "|Az Aktenzeichen" + "".join(f"|{head}nr {head}nummer" for head in _NUMBERED.split()),
        Kind.LAST: "usw und so weiter|etc et cetera|usf und so fort|u.v.m und vieles mehr"
        "|d.M dieses Monats|d.J dieses Jahres|verh verheiratet"
        "|o.Ä oder Ähnliches|u.Ä und Ähnliches|v.Chr vor Christus|n.Chr nach Christus"
        "|MwSt Mehrwertsteuer|Jh Jahrhundert|Aufl Auflage|Str Straße|str straße"
        "|Wdh Wiederholungen|ff folgende|Kü Küche"
        "|Mo Montag|Di Dienstag|Mi Mittwoch|Do Donnerstag|Sa Samstag|Whg Wohnung"
        "|n.E nach Elfmeterschießen|i.E im Elfmeterschießen|lit Buchstabe|n.V nach Verlängerung"
        "|Vj Vorjahr|USt Umsatzsteuer|tägl täglich"
        "|Jan Januar|Feb Februar|Aug August|Sept September|Okt Oktober|Nov November|Dez Dezember",
        Kind.NUMBER: "Kap Kapitel|Abb Abbildung|Bd Band|S Seite|Art Artikel|max maximal"
        "|mind mindestens|Tab Tabelle|Anm Anmerkung|Max Maximal|Mind Mindestens|op Opus"
        "|Gr Größe|So Sonntag|Gl Gleis|Zi Zimmer|Kl Klasse|v vom",
        Kind.SYMBOL: "St.- Sankt-|ü._NN über Normalnull|ü._M. über dem Meeresspiegel"
        "|m/w/d m w d|w/m/d w m d|m/w m w|j/n ja oder nein|n/a n a|c/o care of"
        "|Dr._med. Doktor med|Dr._rer. Doktor rer|Dr._phil. Doktor phil|Dr._jur. Doktor jur"
        "|Dr._h._c. Doktor h. c.|Gr._S Größe S|Gr._M Größe M|Gr._L Größe L|Gr._XL Größe XL"
        + "".join(f"|{day}., {name}," for day, name in german_dates.DAYS.items())
        + f"|{tables.ranges(german_dates.DAYS, 'bis')}"
        + "".join(f"|f._{law} folgender {law}|ff._{law} folgende {law}" for law in _LAWS.split()),
    },
    spaced=True,
)
_UNITS = (
    tables.nouns(
        tables.invariable,
        "km Kilometer|m Meter|cm Zentimeter|mm Millimeter|µm Mikrometer|m2 Quadratmeter"
        "|km2 Quadratkilometer|m3 Kubikmeter|l Liter|ml Milliliter"
        "|cl Zentiliter|dl Deziliter|hl Hektoliter|km/h Kilometer pro Stunde"
        "|m/s Meter pro Sekunde|m² Quadratmeter|km² Quadratkilometer|cm² Quadratzentimeter"
        "|mm² Quadratmillimeter|Tkm tausend Kilometer|m³ Kubikmeter|ha Hektar|ct Cent"
        "|qm Quadratmeter|TL Teelöffel|EL Esslöffel|l/100_km Liter auf einhundert Kilometer",
    )
    | tables.nouns(
        tables.invariable,
        "kg Kilogramm|µg Mikrogramm|g Gramm|Ω Ohm|kΩ Kiloohm|MΩ Megaohm"
        "|mg Milligramm|Uhr Uhr|°C Grad Celsius|°F Grad Fahrenheit|kW Kilowatt"
        "|MW Megawatt|GW Gigawatt|W Watt|V Volt|A Ampere|Hz Hertz|kHz Kilohertz|MHz Megahertz"
        "|GHz Gigahertz|kB Kilobyte|MB Megabyte|GB Gigabyte|TB Terabyte"
        "|Mbit/s Megabit pro Sekunde|MBit/s Megabit pro Sekunde"
        "|MB/s Megabyte pro Sekunde|dB Dezibel|bar Bar|hPa Hektopascal|Stk Stück|Stk. Stück"
        "|‰ Promille|kJ Kilojoule|Gbit/s Gigabit pro Sekunde|GBit/s Gigabit pro Sekunde"
        "|Nm Newtonmeter|mmol Millimol|mol Mol|fps Bilder pro Sekunde|bpm Schläge pro Minute"
        "|mmHg Millimeter Quecksilbersäule"
        "|Zi Zimmer|Zi. Zimmer"
        "|Pck. Päckchen|Pck Päckchen",
        "n",
    )
    | tables.by_name(
        {
            "h Std Std.": Noun("Stunde", "Stunden", "f"),
            "min Min Min.": Noun("Minute", "Minuten", "f"),
            "s Sek Sek.": Noun("Sekunde", "Sekunden", "f"),
            "ms": Noun("Millisekunde", "Millisekunden", "f"),
            "t": Noun("Tonne", "Tonnen", "f"),
            "kWh": Noun("Kilowattstunde", "Kilowattstunden", "f"),
            "Pkt. Pkt Pkte.": Noun("Punkt", "Punkte"),
            "Pers. Pers": Noun("Person", "Personen", "f"),
            "Tabl. Tabl Tbl. Tbl": Noun("Tablette", "Tabletten", "f"),
            "Mon. Mon": Noun("Monat", "Monate"),
            "S.": Noun("Seite", "Seiten", "f"),
            "J.": Noun("Jahr", "Jahre", "n"),
            "Pr.": Noun("Prise", "Prisen", "f"),
            "US-Dollar": tables.invariable("US-Dollar"),
            "m/s²": tables.invariable("Meter pro Sekundenquadrat"),
            "kcal": Noun("Kilokalorie", "Kilokalorien", "f"),
            "Ah": Noun("Amperestunde", "Amperestunden", "f"),
            "Msp. Msp": Noun("Messerspitze", "Messerspitzen", "f"),
            "mAh": Noun("Milliamperestunde", "Milliamperestunden", "f"),
            "M€": Noun("Million Euro", "Millionen Euro", "f"),
            "k€ T€": tables.invariable("tausend Euro"),
        }
    )
    | {
        "kWh/100 km": Noun(
            "Kilowattstunde auf einhundert Kilometer",
            "Kilowattstunden auf einhundert Kilometer",
            "f",
        )
    }
)
_CENT = tables.invariable("Cent")
_PARTS = {n: stem(n).removesuffix("t") + "tel" for n in range(4, 20)}
_PARTS |= {3: "drittel", 20: "zwanzigstel", 100: "hundertstel", 1000: "tausendstel"}
_FRACTIONS = {
    (above, below): f"{count(above, 'n')} {part.capitalize()}"
    for below, part in _PARTS.items()
    for above in range(1, below)
} | {(1, 2): "ein halb"}

GERMAN = Language(
    name="german",
    cardinal=cardinal,
    count=count,
    ordinal=ordinal,
    year=year,
    time=time,
    date=date,
    decimal_mark=",",
    group_marks=". \u00a0\u202f",
    ordinal_marks="",
    point="Komma",
    dot="Punkt",
    minus="minus",
    plus="plus",
    to="bis",
    percent="Prozent",
    degrees=tables.invariable("Grad", "n"),
    number_sign="Nummer",
    and_sign="und",
    operators={"+": "plus", "=": "gleich", "×": "mal", "*": "mal", "÷": "geteilt durch"}
    | {"-": "minus", "−": "minus", "/": "geteilt durch", ":": "geteilt durch"},
    currencies=tables.by_name(
        {
            "€ EUR": Currency(tables.invariable("Euro"), _CENT),
            "$ USD": Currency(tables.invariable("Dollar"), _CENT),
            "£ GBP": Currency(tables.invariable("Pfund", "n"), tables.invariable("Pence")),
            "US$": Currency(tables.invariable("US-Dollar"), _CENT),
            "CHF": Currency(tables.invariable("Franken"), tables.invariable("Rappen")),
            "¥": Currency(tables.invariable("Yen")),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {
            "Tausend Tsd Tsd.": tables.invariable("tausend"),
            "Million Millionen Mio Mio.": Noun("Million", "Millionen", "f"),
            "Milliarde Milliarden Mrd Mrd.": Noun("Milliarde", "Milliarden", "f"),
            "Billion Billionen Bio.": Noun("Billion", "Billionen", "f"),
        }
    ),
    fractions=_FRACTIONS,
    mixed=" ",
    money="{major} {minor}",
    singular_below=0.0,
    date_mark=".",
    dotted_ordinals=True,
    clock_words=("Uhr",),
    glued=r"(?P<hour>[01]?\d|2[0-4])\.(?P<minute>[0-5]\d) ?(?:Uhr|h)(?!\w)",
    months=tables.numbered(MONTHS) | {"Jänner": 1},
    abbreviations=_ABBREVIATIONS,
    phones=r"\(?0[1-9]\d{1,4}\)?[ /-]\d{2,}(?:[ /-]\d{2,})*|0800(?: \d{2,})+|01[567]\d{8,9}"
    r"|\+\d{1,3}(?:[ /-]\(?\d+\)?){2,6}",
    signs={
        "→": ",",
        "§": "Paragraf",
        "§§": "Paragrafen",
        "≈": "ungefähr",
        "√": "Wurzel aus",
        "π": "Pi",
        "∞": "unendlich",
        "✓": "ja",
        "✗": "nein",
        "∫": "Integral von",
        "∑": "Summe von",
        "♭": "Be",
        "♯": "Kreuz",
    }
    | {"≤": "kleiner oder gleich", "≥": "größer oder gleich", "≠": "ungleich"},
    comparisons={"<": "kleiner als", ">": "größer als", "~": "etwa"},
    powers={"2": "hoch zwei", "3": "hoch drei", "": "hoch"},
    per="pro",
    divisors=tables.entries(
        "h Stunde|Std Stunde|Tag Tag|Mon Monat|mtl Monat|Pers Person|l Liter|Woche Woche"
        "|Monat Monat"
        "|Jahr Jahr|Nacht Nacht|Person Person"
        "|Stück Stück|Stunde Stunde|Minute Minute|kg Kilogramm|km Kilometer"
    ),
    addresses={".": "Punkt", "@": "at", "_": "Unterstrich", "-": "Bindestrich"}
    | {"/": "Schrägstrich", ":": "Doppelpunkt"},
    sharp="Sharp",
    keys={"*": "Stern", "#": "Raute"},
    hashtag="Hashtag",
    rules=german_rules.rules(
        _UNITS
        | tables.by_name({"€ EUR": tables.invariable("Euro"), "$ USD": tables.invariable("Dollar")})
        | {"CHF": tables.invariable("Franken")}
    ),
    behind=german_rules.BEHIND,
    numeral_rules=german_numerals.NUMERALS,
    ending="str",
    behind_text={
        "S.": (german_cues.SUBSECTION, "Satz"),
        "Jh.": (german_cues.GENITIVE, "Jahrhunderts"),
        "So.": (german_cues.ON_DAY, "Sonntag"),
        "Fr.": (german_cues.ON_DAY, "Freitag"),
    },
    spans=german_dates.DAYS,
)
