"""Rules for Spanish numbers by the words around them: one, hundreds, ordinals, centuries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from realtime_tts.text.languages import forms
from realtime_tts.text.languages import rules as shared
from realtime_tts.text.languages.language import YEARS, Noun, Rule
from realtime_tts.text.languages.rules import ROMAN, roman_value, rule
from realtime_tts.text.languages.spanish_words import MONTHS, cardinal, count, date, ordinal, time

Words = Callable[[re.Match[str]], str | None]

_GENDERS = shared.Genders(
    {
        "f": "-a -ción -sión -xión -dad -tad -tud -umbre -dez -tez -chez -triz mano noche calle"
        " clase parte vez veces foto moto radio flor señal imagen mujer piel sal cárcel miel luz"
        " salud cruz voz paz llave nave torre gente leche sangre suerte muerte fuente mente nube"
        " nieve tarde base fase frase serie especie superficie carne fiebre sede red pared ley"
        " labor sor catedral orden crisis tesis dosis razón región religión opinión unión reunión"
        " legión cuestión gestión digestión sartén serpiente corriente pendiente madre sirviente"
        " clave nariz raíz perdiz gran imágenes -ciones -siones -giones -niones cama rama llama"
        " fama dama forma norma alarma plataforma firma cima lima crema yema goma broma paloma loma"
        " suma pluma espuma víctima lágrima rima trama gama reforma mama aguas águilas lista pista"
        " vista revista entrevista conquista armas aulas hachas hadas almas áreas alas",
        "m": "-ma -o -e -l -n -s -r -t -k -b -d -m -y -i -u -z -x -c día mapa planeta cometa"
        " tranvía sofá papá agua águila aula hacha hada área ala -ista poeta atleta dálmata -nauta"
        " idiota",
        "": "de y o e u a al en con por para es son era fue eran que no se la el los las le les lo"
        " más menos hasta desde si sin entre como cuando hay ha han mil millón millones va van"
        " están ni pero tras contra según mientras donde porque ya muy también hubo tuvo dijo hizo"
        " empieza termina cierra abre gana pierde cada tiene tienen km m cm mm l ml min s vs",
    }
)
_NUMBER = r"(?P<n>\d{1,3}(?:[. \u00a0\u202f]\d{3})+|\d+)(?P<mil> mil(?= \w))?"
_LABELS = (
    r"\b(?i:página|capítulo|número|línea|tipo|parte|sección|artículo|escena|acto|etapa|nivel|fase"
    r"|versión|anexo|habitación|el|al|del|autobús|sala|puerta|año|tomo|volumen|núm\.|n\.º)\s"
)
_NAMED = (
    r"expediente|pedido|seguimiento|reserva|cliente|cuenta|serie|confirmación|factura|referencia"
)
_CODE = (
    r"(?i:tel\.|teléfono:?|llam\w+ al|marqu\w+(?: el)?"
    r"|\b(?:(?:código|clave|pin|otp|contraseña)"
    r"(?: (?:postal|pin|secreto|promocional|de \d \w+|de \w+)){0,2}"
    rf"|terminad[oa] en|dni|(?:número|n\.?[º°]|núm\.) de (?:{_NAMED})"
    rf"|(?:{_NAMED}) (?:número|n\.?[º°]|núm\.))(?: es| será)?:?)\s"
)
"""Text before a number that is read digit by digit."""
_UNTIL = r"\b(?:[Cc]aduc\w+|[Vv]enc\w+|[Ee]xpir\w+|[Vv]álid[ao] hasta|[Cc]aducidad:?)(?: en| a)?\s"
"""Text before the month and the year until which a card is valid: 08/27."""
_PARTS = r"\b(?i:página|paso|parte|episodio|pregunta|vuelta|nivel|nota)(?: es)?(?: de)?:?\s"
_KINGS = (
    "Felipe|Carlos|Fernando|Alfonso|Luis|Enrique|Juan|Juan Pablo|Pablo|Benedicto|Napoleón|Pío|León"
    "|Gregorio|Clemente|Inocencio|Alejandro|Nicolás|Pedro|Federico|Jorge|Eduardo|Ricardo|Jacobo"
    "|Sancho|Ramiro|Jaime|Guillermo|Francisco|Leopoldo|Alberto|Ramsés|Manuel|José|Maximiliano"
)
_QUEENS = "Isabel|María|Catalina|Cristina|Margarita|Juana"
_CHAPTERS = r"[Cc]apítulo|[Tt]omo|[Aa]cto|[Ll]ibro|[Tt]ipo|[Vv]olumen|[Aa]nexo|[Ff]ase|[Ee]scena"

_HALVES = {"kg": "kilogramo", "l": "litro", "km": "kilómetro", "m": "metro"}

_ADJECTIVES = "gran|grandes|principales|posibles|diferentes|jóvenes|mejores|peores"
BEHIND = re.compile(
    rf"(?:(?:[\d .]*[02-9])?1|[\d .]*[2-9]\d\d(?:[. ]\d{{3}})*)(?: (?:{_ADJECTIVES}))?"
    r"|\d+[–-]\d+"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d\d)?|\d{1,3}/\d{1,2}|½|[\d.]+ mil|\d{1,3}x|1 de|1 de la|\$[\d.,]+"
)
"""Text from a number on behind which the rules look at another word."""


def _agreeing(skip: Iterable[str]) -> Words:
    """Return the words for one and hundreds, in the gender of the noun. `skip`: no nouns."""
    no_nouns = frozenset(skip)

    def said(match: re.Match[str]) -> str | None:
        number, noun = int(re.sub(r"\D", "", match["n"])), match["noun"]
        is_year = number in YEARS and match["n"].isdigit() and number % 100 == 1
        if noun in no_nouns or is_year or (number > 1 and not noun.endswith("s")):
            return None
        gender = _gender(noun)
        return count(number * (1000 if match["mil"] else 1), gender) if gender else None

    return said


def _gender(noun: str) -> str:
    """Return the gender of a noun in the singular or the plural; "" for a word that is no noun."""
    singular = noun[:-3] + "z" if noun.endswith("ces") else noun
    forms = (noun, noun.removesuffix("s"), noun.removesuffix("es"), singular)
    genders = [_GENDERS.of(form) for form in forms]
    return genders[0] and ("f" if "f" in genders else "m")


def _range(match: re.Match[str]) -> str:
    number = int(match["n"])
    return (count(number, "f") if _gender(match["noun"]) == "f" else cardinal(number)) + " a "


def _half(match: re.Match[str]) -> str | None:
    return {"m": "medio", "f": "media"}.get(_gender(match["noun"]))


def _with_point(units: Mapping[str, Noun]) -> Words:
    """Read a measure with a decimal point, as in America: 1.75 m."""

    def said(match: re.Match[str]) -> str:
        part, unit = match["part"], units.get(match["unit"])
        zero = "cero " if part[0] == "0" and len(part) > 1 else ""
        number = f"{cardinal(int(match['n']))} punto {zero}{cardinal(int(part))}"
        return f"{number} {unit.many if unit else 'por ciento'}"

    return said


def _and_a_half(units: Mapping[str, Noun]) -> Words:
    def said(match: re.Match[str]) -> str:
        number, unit = int(match["n"]), units[match["unit"]]
        noun, half = (
            unit.one if number == 1 else unit.many,
            "media" if unit.gender == "f" else "medio",
        )
        return f"{count(number, unit.gender)} {noun} y {half}"

    return said


def _numbered(mark: str) -> Words:
    """Read kings and centuries: ordinals up to ten."""

    def said(match: re.Match[str]) -> str:
        value = roman_value(match["roman"])
        return ordinal(value, mark) if value <= 10 else cardinal(value)

    return said


def _before(mark: str) -> Words:
    def said(match: re.Match[str]) -> str:
        value = roman_value(match["roman"])
        return ordinal(value, "er" if mark == "o" and value in (1, 3) else mark)

    return said


def _dollars(match: re.Match[str]) -> str:
    """Read dollars and pesos as they are written in America: $1,500.50."""
    number, cents = int(re.sub(r"\D", "", match["n"])), match["cents"]
    one, many = ("peso", "pesos") if match["pesos"] else ("dólar", "dólares")
    words = f"{count(number, 'm')} {one if number == 1 else many}"
    return f"{words} con {cardinal(int(cents))}" if cents and int(cents) else words


_DAYS = "lunes|martes|miércoles|jueves|viernes|sábado|domingo"


def _millions(match: re.Match[str]) -> str:
    number = f"{cardinal(int(match['n']))} punto {cardinal(int(match['part']))}"
    return f"{number} {match['scale']} de dólares"


def _rooms(match: re.Match[str]) -> str:
    """Read hab. behind a small number, which has rooms; a larger one has inhabitants."""
    number = int(match["n"])
    return f"{count(number, 'f')} {'habitación' if number == 1 else 'habitaciones'}"


def _hours(match: re.Match[str]) -> str:
    minute = int(match["minute"])
    return count(int(match["hour"]), "f") + (f" y {cardinal(minute)}" if minute else "") + " horas"


def _lasting(match: re.Match[str]) -> str:
    """Read how long something lasts: 2h45min, 2:00:35 h."""
    names = (("hour", "hora", "f"), ("minute", "minuto", "m"), ("second", "segundo", "m"))
    parts = [
        f"{count(n, gender)} {name}{'s' * (n != 1)}"
        for group, name, gender in names
        if (n := int(match.groupdict().get(group) or 0))
    ]
    return " ".join(parts)


FEMININE = re.compile(r"\b(?:temp\.|temperatura|velocidad|dosis|altura|edad|potencia|nota|la) \Z")
"""Text before máx. and mín. where they are feminine."""
_FIRST = (
    forms.scales(cardinal, " a "),
    rule(r"(?P<hour>\d{1,2}) ?h ?(?P<minute>\d{1,2}) ?min(?!\w)", _lasting),
    rule(r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d):(?P<second>[0-5]\d) h(?!\w)", _lasting),
    shared.seats(cardinal, "asientos?|plazas?|fila|butacas?|puerta|andén"),
    rule(
        r"\d{3,9}(?:[ -]\d{3,})*(?![\w.,/-]*\d| \d)",
        shared.spelled(cardinal),
        _CODE,
    ),
    rule(r"\d{8}(?=-?[A-Z](?!\w))", shared.spelled(cardinal)),
    rule(r"(?P<one>\d{1,3})-(?P<two>\d{1,3})(?!\w)", shared.linked(cardinal, " "), r"\d # ?"),
    *shared.long_codes(cardinal),
    *shared.vehicles(cardinal),
    *shared.parts_of(
        cardinal, "de", _PARTS, "tareas|preguntas|puntos|estrellas|pasos|páginas|personas"
    ),
    rule(r"(?P<one>\d,\d)/(?P<two>\d+)(?![\d/])", shared.rated(cardinal, "coma", "de")),
    rule(
        r"(?P<one>\d{1,2})/(?P<two>10)(?![\d/])",
        shared.linked(cardinal, " de "),
        r"\b(?:[Ss]ac\w+|[Pp]untuación|[Cc]alificación"
        r"|[Vv]aloración|[Oo]btuvo|y)(?: de)?:?(?: un)?\s",
    ),
    rule(
        r"(?P<one>\d{2,3})/(?P<two>\d{1,3})(?P<unit> mmHg(?!\w))?(?![\d/])",
        shared.linked(cardinal, " ", " milímetros de mercurio"),
        r"\b(?i:tensión|presión)\b[\w ]{0,20}:? ",
    ),
)
_AMOUNTS = (
    rule(
        r"(?P<one>\d{1,4})/(?P<two>(?:19|20)\d\d)(?![\w/])",
        shared.linked(cardinal, " barra "),
        r"\b(?:Ley(?: Orgánica)?|RD|LO|Decreto(?:-ley)?"
        r"|Directiva|Reglamento|Orden|Resolución|Sentencia|L\.O\.|STS|STC|SAP|STSJ)\s",
    ),
    rule(
        r"(?P<n>\d{1,3}) mil M€",
        lambda m: f"{cardinal(int(m['n']))} mil millones de euros",
    ),
    rule(
        r"(?P<n>\d{1,3}(?:,\d{3})+)(?:\.(?P<cents>\d\d))?"
        r" (?:(?P<pesos>pesos|MXN)|dólares|USD)(?!\w)",
        _dollars,
    ),
    rule(r"1(?![\w:]|[.,]\d| (?!y\b)\w)", lambda m: "una", r"\b(?:[Ee]s|[Aa]) la\s"),
    rule(r"(?P<one>(?:19|20)\d\d)/(?P<two>\d\d(?:\d\d)?)(?![\d/])", shared.linked(cardinal, " ")),
    shared.dates(date, ".-"),
    shared.month_years(MONTHS, " de ", cardinal),
    rule(
        r"(?!24/7|1/2 )(?P<day>\d{1,2})/(?P<month>\d{1,2})(?![\w/]|\.\d| de(?!\w)| del)",
        shared.dated(date),
        rf"\b(?i:el|del|al|{_DAYS}|(?:lun|mar|mié|jue|vie|sáb|dom)\.),?\s",
    ),
    rule(
        r"\$(?P<n>\d{1,3}(?:,\d{3})+|\d+(?=\.\d\d(?!\d)| pesos| MXN| USD| dólares)"
        r"|\d{1,3}(?:\.\d{3})+(?= pesos))(?:\.(?P<cents>\d\d))?"
        r"(?:(?:(?P<pesos> (?:pesos|MXN))| (?:USD|dólares))(?!\w))?(?![\d.,]*\d)",
        _dollars,
    ),
    rule(r"\$(?P<n>\d+)\.(?P<part>\d+) (?P<scale>(?:mil )?millones)(?!\w)", _millions),
    rule(r"(?P<n>1?\d|20) hab(?!\w|\.?/)", _rooms),
    rule(r"1(?= de la )", lambda m: "una", r"\b[Ll]a\s"),
    rule(r"(?P<hour>\d{1,2})[:.](?P<minute>[0-5]\d) h(?!\w)", _hours),
    rule(
        r"(?P<n>[4-9]\d|[12]\d\d)º(?![\w])",
        lambda m: f"{cardinal(int(m['n']))} grados",
        r"\b(?:a|hasta|de|unos)\s",
    ),
    rule(r"(?P<n>[2-9]0)['’]?s(?!\w)", lambda m: cardinal(int(m["n"]))),
    rule(r"(?P<n>\d+)(?: 1/2| ?½)(?!\d)", lambda m: f"{cardinal(int(m['n']))} y medio"),
    rule(r"(?:1/2|½) ?(?P<noun>kg|l|km|m)(?!\w)", lambda m: f"medio {_HALVES[m['noun']]}"),
    rule(r"(?:1/2|½)(?= (?P<noun>(?!de)\w+))", _half),
)
_LAST = (
    rule(r"(?P<n>\d{1,3})[–-](?=\d+ (?P<noun>[^\W\d_]+s)(?!\w))", _range),
    *shared.inches(
        lambda n: count(n, "f"),
        "coma",
        "pulgadas",
        ("media pulgada", "un cuarto de pulgada", "tres cuartos de pulgada"),
    ),
    shared.multiples(cardinal, "coma", "una vez", "veces", "a"),
    shared.times(cardinal, "coma", "por"),
    shared.laps(cardinal, "coma"),
    forms.expiries(lambda month, year: f"{MONTHS[month - 1]} de {cardinal(year)}", _UNTIL),
    forms.moments(date, time, cardinal, {"+": " más ", "-": " menos "}),
    forms.aircraft(cardinal),
    forms.short_dates(date),
    rule(
        r"(?P<n>\d{1,2})[-–](?=\d{1,2} de(?!\w))",
        lambda m: f"{cardinal(int(m['n']))} al ",
        r"\b[Dd]el ",
    ),
    *shared.ratios(cardinal, " a ", " a "),
)


def rules(units: Mapping[str, Noun], no_nouns: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules. `units`: the units by their short forms; `no_nouns`: words behind a number
    with which it does not agree."""
    unit = "|".join(map(re.escape, sorted(units.keys() - {"h"}, key=len, reverse=True)))
    noun = rf"(?= (?:(?:{_ADJECTIVES}) )?(?P<noun>[^\W\d_]+)(?!\w))"
    return (
        *_FIRST,
        rule(rf"(?P<n>\d+)(?: 1/2| ?½) ?(?P<unit>{unit}|h)(?!\w)", _and_a_half(units)),
        rule(rf"(?P<n>\d+)\.(?P<part>\d\d?) ?(?P<unit>{unit}|%)(?!\w)", _with_point(units)),
        *_AMOUNTS,
        rule(rf"{_NUMBER}{noun}", _agreeing(no_nouns), unless=_LABELS),
        *_LAST,
    )


NUMERALS = (
    rule(
        rf"{ROMAN}(?!\w)",
        _numbered(""),
        r"\b(?:[Ss]iglos? |(?:[Ss]iglos?|ss\.) [IVX]+ (?:y|al|a|o) )",
    ),
    rule(rf"{ROMAN}(?!\w)", lambda m: cardinal(roman_value(m["roman"])), rf"\b(?:{_CHAPTERS}) "),
    rule(rf"{ROMAN}(?!\w)", _numbered("a"), rf"\b(?:{_QUEENS}) "),
    rule(rf"{ROMAN}(?!\w)", _numbered(""), rf"\b(?:{_KINGS}) "),
    rule(rf"{ROMAN}(?= [A-ZÁÉÍÓÚ])", _before("a"), r"\b(?:[Ll]a) "),
    rule(rf"{ROMAN}(?= [A-ZÁÉÍÓÚ])", _before("o"), r"\b(?:[Ee]l|[Dd]el|[Aa]l) "),
)
