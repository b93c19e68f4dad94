"""Spanish."""

from __future__ import annotations

from realtime_tts.text.languages import spanish_rules, tables
from realtime_tts.text.languages.language import Abbreviation, Currency, Kind, Language, Noun
from realtime_tts.text.languages.spanish_words import cardinal, count, date, ordinal, time

_DAYS = tables.entries(
    "lun lunes|mar martes|mié miércoles|jue jueves|vie viernes|sáb sábado|dom domingo"
)
_CENTURIES = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI".split()
_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Sr señor|Sra señora|Sres señores|Sras señoras|Srta señorita|Dr doctor"
        "|Dra doctora|Prof profesor|Profa profesora|D don|Dña doña"
        "|Lic licenciado|Ing ingeniero|Gral general|Sto Santo|Sta Santa|P.D posdata",
        Kind.PHRASE: "Ud usted|Uds ustedes"
        "|p.ej por ejemplo|aprox aproximadamente|tel teléfono"
        "|vs versus|Av avenida|Avda avenida|dpto departamento"
        "|izq izquierda|dcha derecha|i.e es decir|Pza plaza"
        "|incl incluido|ref referencia|expte expediente"
        "|ext extensión"
        "|Cía Compañía|Hnos Hermanos|ayto ayuntamiento|Admón Administración|edif edificio|Cd Ciudad"
        "|temp temperatura|ej ejemplo|L.O Ley Orgánica|RR.HH recursos humanos|FF.AA Fuerzas Armadas"
        "|DD.HH derechos humanos"
        "|FF.CC ferrocarriles|JJ.OO Juegos Olímpicos"
        "|CC.AA comunidades autónomas|pers personas|cdtas cucharaditas|cdta cucharadita"
        "|izda izquierda|C.P código postal|cda cucharada|cdas cucharadas",
        Kind.SYMBOL: "D.ª doña|Sr._y señor y|Dr._y doctor y|Sra._y señora y|D._y don y"
        "|y/o y o|s/n sin número|c/u cada uno|n/a n a|C/_ calle|n.º número|N.º Número|nº número"
        f"|Nº Número|Núm._de Número de|núm._de número de|{tables.ranges(_DAYS, 'a')}"
        + "".join(
            f"|{short}._{roman} {name} {ordinal(n) if n <= 10 else cardinal(n)}"
            for short, name in (("s", "siglo"), ("S", "Siglo"), ("ss", "siglos"))
            for n, roman in enumerate(_CENTURIES, 1)
        ),
        Kind.LAST: "etc etcétera|EE.UU Estados Unidos|a.C antes de Cristo|d.C después de Cristo"
        "|ene enero|feb febrero|abr abril|jun junio|jul julio|ago agosto|sept septiembre"
        "|oct octubre|nov noviembre|dic diciembre"
        "|lun lunes|mié miércoles|jue jueves|vie viernes|sáb sábado|dom domingo"
        "|máx máximo|mín mínimo|Máx Máximo|Mín Mínimo|ss siguientes|trim trimestre|dto descuento"
        "|Lun Lunes|Mié Miércoles|Jue Jueves|Vie Viernes|Sáb Sábado",
        Kind.NUMBER: "Cód Código|cód código|núm número|Núm Número"
        "|apdo apartado|op opus|min minuto|apto apartamento"
        "|Hab Habitación|Págs Páginas|Pág Página|Apto Apartamento"
        "|depto departamento|Depto Departamento|Cra Carrera|Cl Calle|Mz Manzana|Lt Lote"
        "|mar martes|Mar Martes|Dom Domingo|No Número"
        "|pág página|págs páginas|p página|cap capítulo|art artículo|Art Artículo"
        "|vol volumen|fig figura",
    },
    spaced=True,
) | {
    "hab": Abbreviation("habitación", Kind.NUMBER, "habitantes"),
    "c/": Abbreviation("cada", Kind.NUMBER, bare=True),
}
_UNITS = (
    tables.nouns(
        tables.plural_s,
        "km kilómetro|m metro|cm centímetro|mm milímetro|kg kilogramo|g gramo|mg miligramo"
        "|µg microgramo|Ω ohmio|kΩ kiloohmio"
        "|l litro|L litro|ml mililitro|mL mililitro|cl centilitro|dl decilitro|min minuto"
        "|s segundo|ms milisegundo|km/h kilómetro por hora|m/s metro por segundo|°C grado Celsius"
        "|°F grado Fahrenheit|kW kilovatio|MW megavatio|GW gigavatio|W vatio|V voltio|A amperio"
        "|kWh kilovatio hora|Hz hercio|kHz kilohercio|MHz megahercio|GHz gigahercio|kB kilobyte"
        "|MB megabyte|GB gigabyte|TB terabyte|Mbps megabit por segundo"
        "|Mb/s megabit por segundo|Gb/s gigabit por segundo|Mbit/s megabit por segundo"
        "|Mb megabit|Gb gigabit|Nm newton metro|mmol milimol|mol mol|MB/s megabyte por segundo"
        "|Gbps gigabit por segundo|mAh miliamperio hora|lpm latido por minuto|pts punto"
        "|mmHg milímetro de mercurio|fps fotograma por segundo"
        "|dB decibelio|CV caballo|l/100_km litro a los cien kilómetros"
        "|L/100_km litro a los cien kilómetros",
    )
    | tables.nouns(
        tables.plural_s,
        "h hora|ha hectárea|t tonelada|kcal kilocaloría|cal caloría|lb libra|oz onza",
        "f",
    )
    | tables.by_name(
        {
            "cda. cda cdas. cdas": tables.plural_s("cucharada", "f"),
            "uds. uds ud.": Noun("unidad", "unidades", "f"),
            "págs. págs": tables.plural_s("página", "f"),
            "comp. comp": tables.plural_s("comprimido"),
            "ptos. ptos pto.": tables.plural_s("punto"),
            "lts. lts": tables.plural_s("litro"),
            "grs. grs": tables.plural_s("gramo"),
            "hab. hab": Noun("habitante", "habitantes"),
            "cdta. cdta cdtas. cdtas": tables.plural_s("cucharadita", "f"),
        }
    )
    | {
        "m/s²": Noun("metro por segundo al cuadrado", "metros por segundo al cuadrado"),
        "m²": Noun("metro cuadrado", "metros cuadrados"),
        "mm²": Noun("milímetro cuadrado", "milímetros cuadrados"),
        "ºC": tables.plural_s("grado Celsius"),
        "Ah": Noun("amperio hora", "amperios hora"),
        "km²": Noun("kilómetro cuadrado", "kilómetros cuadrados"),
        "cm²": Noun("centímetro cuadrado", "centímetros cuadrados"),
        "m³": Noun("metro cúbico", "metros cúbicos"),
        "m2": Noun("metro cuadrado", "metros cuadrados"),
        "km2": Noun("kilómetro cuadrado", "kilómetros cuadrados"),
        "m3": Noun("metro cúbico", "metros cúbicos"),
        "hPa": Noun("hectopascal", "hectopascales"),
        "MP": Noun("megapíxel", "megapíxeles"),
        "M€": Noun("millón de euros", "millones de euros"),
        "k€": tables.invariable("mil euros"),
        "‰": tables.invariable("por mil"),
        "hab./km²": Noun("habitante por kilómetro cuadrado", "habitantes por kilómetro cuadrado"),
    }
)
_SCALES = tables.by_name(
    {"mil": tables.invariable("mil"), "millón millones": Noun("millón", "millones")}
)
_PARTS = {3: "tercio"} | {n: ordinal(n) for n in (*range(4, 11), 12, 100, 1000)}
_PARTS |= {1000: "milésimo"}
_FRACTIONS = {
    (above, below): f"{count(above, 'm')} {part}{'s' if above > 1 else ''}"
    for below, part in _PARTS.items()
    for above in range(1, below)
} | {(1, 2): "un medio"}

SPANISH = Language(
    name="spanish",
    cardinal=cardinal,
    count=count,
    ordinal=ordinal,
    year=cardinal,
    time=time,
    date=date,
    decimal_mark=",",
    group_marks=". \u00a0\u202f",
    ordinal_marks=r"\.?[ºª]|\.er|er(?!\w)|[rdtv][oa]|m[oa]|n[oa]",
    point="coma",
    dot="punto",
    minus="menos",
    plus="más",
    to="a",
    percent="por ciento",
    degrees=tables.plural_s("grado"),
    number_sign="número",
    and_sign="y",
    operators={"+": "más", "=": "igual a", "×": "por", "*": "por", "÷": "dividido entre"}
    | {"-": "menos", "−": "menos", "/": "dividido entre"},
    currencies=tables.by_name(
        {
            "€ EUR": Currency(tables.plural_s("euro"), tables.plural_s("céntimo")),
            "$ USD": Currency(Noun("dólar", "dólares"), tables.plural_s("centavo")),
            "£ GBP": Currency(tables.plural_s("libra", "f"), tables.plural_s("penique")),
            "US$": Currency(
                Noun("dólar estadounidense", "dólares estadounidenses"), tables.plural_s("centavo")
            ),
            "MXN": Currency(Noun("peso mexicano", "pesos mexicanos"), tables.plural_s("centavo")),
            "CHF": Currency(tables.plural_s("franco"), tables.plural_s("céntimo")),
            "¥": Currency(Noun("yen", "yenes")),
        }
    ),
    units=_UNITS,
    scales=_SCALES,
    fractions=_FRACTIONS,
    mixed=" y ",
    money="{major} con {minor}",
    of_scale=lambda noun: f" de {noun}",
    singular_below=0.0,
    halves={
        form: half + "m"
        for half in "ap"
        for name in (f"{half}m", f"{half}.m", f"{half}.m.", f"{half}. m", f"{half}. m.")
        for form in (name, name.upper())
    },
    clock_words=("h",),
    dotted_units=frozenset("h hs hrs min mins seg segs s".split()),
    abbreviations=_ABBREVIATIONS,
    whole_decimals=True,
    phones=r"(?:\(\d{2,3}\)|\d{2}) \d{4}[ -]\d{4}|[679]\d{2}(?: \d{3}){2}(?= ?[.,;:!?)]|\Z)"
    r"|[679]\d{8}|[679]\d{2}(?: \d\d){3}"
    r"|9\d \d{3}(?: \d\d){2}|\(\d{2,3}\) \d{3,4}-\d{4}|\d{3}-\d{4}"
    r"|\+\d{1,3}(?:[ .-]\(?\d+\)?){2,5}",
    signs={
        "→": ",",
        "§": "párrafo",
        "§§": "párrafos",
        "≈": "aproximadamente",
        "√": "raíz de",
        "π": "pi",
        "∞": "infinito",
        "✓": "sí",
        "✗": "no",
        "∫": "integral de",
        "∑": "suma de",
        "♭": "bemol",
        "♯": "sostenido",
    }
    | {"≤": "menor o igual que", "≥": "mayor o igual que", "≠": "distinto de"},
    comparisons={"<": "menor que", ">": "mayor que", "~": "unos"},
    powers={"2": "al cuadrado", "3": "al cubo", "": "elevado a"},
    per="por",
    divisors=tables.entries(
        "día día|semana semana|mes mes|año año|noche noche|persona persona|hora hora|minuto minuto"
    ),
    addresses={".": "punto", "@": "arroba", "_": "guion bajo", "-": "guion"}
    | {"/": "barra", ":": "dos puntos"},
    sharp="sostenido",
    keys={"*": "asterisco", "#": "almohadilla"},
    hashtag="hashtag",
    rules=spanish_rules.rules(_UNITS, {*_UNITS, *_SCALES, "EUR", "USD", "MXN"}),
    behind=spanish_rules.BEHIND,
    spans=tables.spans(_DAYS),
    numeral_rules=spanish_rules.NUMERALS,
    behind_text={
        "máx.": (spanish_rules.FEMININE, "máxima"),
        "mín.": (spanish_rules.FEMININE, "mínima"),
        "Mar.": (tables.LINE_START, "Martes"),
        "Dom.": (tables.LINE_START, "Domingo"),
    },
)
