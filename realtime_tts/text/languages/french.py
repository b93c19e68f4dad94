"""French, with the numbers of France."""

from __future__ import annotations

from realtime_tts.text.languages import french_rules, tables
from realtime_tts.text.languages.french_words import MONTHS, cardinal, count, date, ordinal, time
from realtime_tts.text.languages.language import Currency, Kind, Language, Noun


def _of(noun: str) -> str:
    return f" d'{noun}" if noun[0] in "aeiouéh" else f" de {noun}"


_DAYS = tables.entries(
    "lun lundi|mar mardi|mer mercredi|jeu jeudi|ven vendredi|sam samedi|dim dimanche"
)
_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Mgr Monseigneur|Mme Madame"
        "|Mmes Mesdames|Mlle Mademoiselle|Dr Docteur|Pr Professeur"
        "|M Monsieur|MM Messieurs|Me Maître|St Saint|Ste Sainte|Sté Société",
        Kind.PHRASE: "p.ex par exemple|par_ex par exemple|c.-à-d c'est-à-dire|i.e c'est-à-dire"
        "|env environ"
        "|cf confer|tél téléphone|av avenue|bd boulevard"
        "|s.v.p s'il vous plaît|approx approximativement|vs versus|resp respectivement"
        "|N.B nota bene|S.V.P S'il vous plaît|bât bâtiment"
        "|réf référence|pl place|Temp Température|p.a par an",
        Kind.SYMBOL: "M._et Monsieur et|MM._les Messieurs les|M._le Monsieur le|M._l' Monsieur l'"
        "|M._l’ Monsieur l’|St- Saint-|Ste- Sainte-|o/n oui ou non|n/a n a"
        "|Rdv Rendez-vous|rdv rendez-vous|n° numéro|nº numéro|N° Numéro|Nº Numéro"
        "|Dr_et Docteur et|Dr._et Docteur et|Me_et Maître et|c._à_café cuillère à café"
        "|art._L. article L|art._R. article R|art._D. article D|Art._L. Article L"
        "|art._L article L|art._R article R|art._D article D"
        f"|c._à_soupe cuillère à soupe|{tables.ranges(_DAYS, 'au')}|{tables.ranges(_DAYS, 'à')}",
        Kind.LAST: "etc et cetera|av._J.-C avant Jésus-Christ|apr._J.-C après Jésus-Christ"
        "|ap._J.-C après Jésus-Christ|hab habitants|max maximum"
        "|pers personnes|arr arrondissement|ét étage|janv janvier|févr février|avr avril"
        "|juil juillet|sept septembre|oct octobre|nov novembre|déc décembre|lun lundi|ven vendredi"
        "|sam samedi|dim dimanche|Lun Lundi|Ven Vendredi|Dim Dimanche|ss suivants",
        Kind.NUMBER: "no numéro|nos numéros|p page"
        "|pp pages|chap chapitre|art article|vol volume|fig figure|min minimum|éd édition"
        "|Max Maximum|Min Minimum|Chap Chapitre|Art Article|Vol Volume|Fig Figure|al alinéa"
        "|op opus|th thermostat|Th Thermostat"
        "|Mar Mardi|Mer Mercredi|Jeu Jeudi|coef coefficient|coeff coefficient|Coef Coefficient|"
        + "|".join(f"{day} {_DAYS[day]}" for day in ("mar", "mer", "jeu")),
    },
    bare="Mgr Sté Mme Mmes Mlle Dr Pr Me St Ste no nos bd Bd",
    spaced=True,
)
_UNITS = (
    tables.nouns(
        tables.plural_s,
        "km kilomètre|m mètre|cm centimètre|mm millimètre|kg kilogramme|g gramme|mg milligramme"
        "|µg microgramme|Ω ohm|kΩ kiloohm|MΩ mégohm"
        "|l litre|L litre|ml millilitre|mL millilitre|cl centilitre|dl décilitre|hl hectolitre"
        "|km/h kilomètre par heure|m/s mètre par seconde|ha hectare|°C degré Celsius"
        "|°F degré Fahrenheit|kW kilowatt|MW mégawatt|GW gigawatt|kWh kilowattheure|W watt|V volt"
        "|A ampère|Ko kilooctet|ko kilooctet|Mo mégaoctet|Go gigaoctet|To téraoctet"
        "|Mb/s mégabit par seconde|Gb/s gigabit par seconde"
        "|Mbit/s mégabit par seconde|Mo/s mégaoctet par seconde|dB décibel|bar bar|hPa hectopascal"
        "|Gbit/s gigabit par seconde|pts point|mAh milliampère-heure|Mpx mégapixel"
        "|mmHg millimètre de mercure|bpm battement par minute"
        "|L/100_km litre aux cent kilomètres|l/100_km litre aux cent kilomètres"
        "|Nm newton-mètre|kVA kilovoltampère|kms kilomètre|Ah ampère-heure|mmol millimole|mol mole"
        "|j jour|cp comprimé"
        "|M€ million d'euros|M_€ million d'euros|Md€ milliard d'euros",
    )
    | tables.nouns(
        tables.plural_s,
        "min minute|s seconde|ms milliseconde|t tonne|kcal kilocalorie|p. page"
        "|ips image par seconde",
        "f",
    )
    | tables.nouns(
        tables.invariable,
        "Hz hertz|kHz kilohertz|MHz mégahertz|GHz gigahertz|k€ mille euros|‰ pour mille",
    )
    | {
        "m/s²": Noun("mètre par seconde au carré", "mètres par seconde au carré"),
        "m²": Noun("mètre carré", "mètres carrés"),
        "mm²": Noun("millimètre carré", "millimètres carrés"),
        "ºC": tables.plural_s("degré Celsius"),
        "km²": Noun("kilomètre carré", "kilomètres carrés"),
        "cm²": Noun("centimètre carré", "centimètres carrés"),
        "m³": Noun("mètre cube", "mètres cubes"),
        "m2": Noun("mètre carré", "mètres carrés"),
        "km2": Noun("kilomètre carré", "kilomètres carrés"),
        "m3": Noun("mètre cube", "mètres cubes"),
        "c. à soupe": Noun("cuillère à soupe", "cuillères à soupe", "f"),
        "c. à café": Noun("cuillère à café", "cuillères à café", "f"),
        "c. à s.": Noun("cuillère à soupe", "cuillères à soupe", "f"),
        "c. à c.": Noun("cuillère à café", "cuillères à café", "f"),
        "ch": Noun("cheval", "chevaux"),
        "hab./km²": Noun("habitant par kilomètre carré", "habitants par kilomètre carré"),
    }
)
_PARTS = {n: ordinal(n) for n in (*range(5, 11), 12, 100, 1000)} | {3: "tiers", 4: "quart"}
_FRACTIONS = {
    (above, below): f"{cardinal(above)} {part}{'s' if above > 1 and below != 3 else ''}"
    for below, part in _PARTS.items()
    for above in range(1, below)
} | {(1, 2): "un demi"}

FRENCH = Language(
    name="french",
    cardinal=cardinal,
    count=count,
    ordinal=ordinal,
    year=cardinal,
    time=time,
    date=date,
    decimal_mark=",",
    group_marks=". \u00a0\u202f",
    ordinal_marks="ᵉʳ|ᵉ|ers?|res?|ères?|èmes?|es?|nde?|des?",
    point="virgule",
    dot="point",
    minus="moins",
    plus="plus",
    to="à",
    percent="pour cent",
    degrees=tables.plural_s("degré"),
    number_sign="numéro",
    and_sign="et",
    operators={"+": "plus", "=": "égale", "×": "fois", "*": "fois", "÷": "divisé par"}
    | {"-": "moins", "−": "moins", "/": "divisé par"},
    currencies=tables.by_name(
        {
            "€ EUR": Currency(tables.plural_s("euro"), tables.plural_s("centime")),
            "$ USD": Currency(tables.plural_s("dollar"), tables.plural_s("cent")),
            "£ GBP": Currency(tables.plural_s("livre", "f"), Noun("penny", "pence")),
            "US$": Currency(
                Noun("dollar américain", "dollars américains"), tables.plural_s("cent")
            ),
            "CHF": Currency(Noun("franc suisse", "francs suisses"), tables.plural_s("centime")),
            "¥": Currency(tables.plural_s("yen")),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {
            "mille": tables.invariable("mille"),
            "million millions": tables.plural_s("million"),
            "milliard milliards Md Mds": tables.plural_s("milliard"),
        }
    ),
    fractions=_FRACTIONS,
    mixed=" et ",
    money="{major} {minor}",
    of_scale=_of,
    singular_below=2.0,
    months=tables.numbered(MONTHS) | french_rules.SHORT_MONTHS,
    abbreviations=_ABBREVIATIONS,
    glued=r"(?P<hour>[01]?\d|2[0-4]) ?h ?(?P<minute>[0-5]\d)?(?!\w)",
    clock_words=("h",),
    dotted_units=frozenset("h hrs min mn sec s".split()),
    whole_decimals=True,
    signs={
        "→": ",",
        "§": "paragraphe",
        "§§": "paragraphes",
        "≈": "environ",
        "√": "racine de",
        "π": "pi",
        "∞": "infini",
        "✓": "oui",
        "✗": "non",
        "∫": "intégrale de",
        "∑": "somme de",
        "♭": "bémol",
        "♯": "dièse",
    }
    | {"≤": "inférieur ou égal à", "≥": "supérieur ou égal à", "≠": "différent de"},
    comparisons={"<": "inférieur à", ">": "supérieur à", "~": "environ"},
    powers={"2": "au carré", "3": "au cube", "": "puissance"},
    per="par",
    divisors=tables.entries(
        "h heure|jour jour|semaine semaine|mois mois|an an|nuit nuit|personne personne"
        "|pers personne|heure heure|minute minute|j jour"
    ),
    addresses={".": "point", "@": "arobase", "_": "tiret bas", "-": "tiret"}
    | {"/": "barre oblique", ":": "deux-points"},
    sharp="dièse",
    keys={"*": "étoile", "#": "dièse"},
    hashtag="hashtag",
    rules=french_rules.RULES,
    behind=french_rules.BEHIND,
    numeral_rules=french_rules.NUMERALS,
    spans=tables.spans(_DAYS),
    numeral_marks=("", "er", "re", "e", "ème", "es", "ᵉ", "ᵉʳ"),
    codes=french_rules.ARTICLES,
    code_heads=("L", "R", "D"),
    pairs=lambda digits: cardinal(int(digits)),
    behind_text={
        "mar.": (french_rules.ON_DAY, "mardi"),
        "mer.": (french_rules.ON_DAY, "mercredi"),
        "Mar.": (tables.LINE_START, "Mardi"),
        "Mer.": (tables.LINE_START, "Mercredi"),
        "Jeu.": (tables.LINE_START, "Jeudi"),
    },
)
