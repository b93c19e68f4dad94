"""Rules for French numbers by the words around them: one, centuries, kings, telephone numbers."""

from __future__ import annotations

import re

from realtime_tts.text.languages import forms
from realtime_tts.text.languages import rules as shared
from realtime_tts.text.languages.french_words import MONTHS, cardinal, count, date, ordinal, time
from realtime_tts.text.languages.rules import ROMAN, roman_value, rule

_GENDERS = shared.Genders(
    {
        "f": "-tion -sion -xion -té -ée -ie -ure -ade -aison -ence -ance -elle -esse -euse -rice"
        " -ise -ille -ine -ude -ère -oire -ive -tte -nne boisson finale leçon femme minute seconde"
        " nuit page réponse erreur fois chambre place table tasse tranche carte rue porte fenêtre"
        " photo vidéo moto main fin faim dent forêt mer cour part fleur couleur peur sœur tante"
        " chose classe école étoile île ferme fête flèche image langue larme lettre ligne lampe"
        " liste marche marque montagne montre note paire pause pierre pièce pomme orange banane"
        " tomate plage plante poche poule règle robe route salle scène sorte souris tâche tente"
        " tête toile trace vache vitre voix zone app équipe étape épreuve affaire aide âme arme"
        " balle banque barre base boîte bouche branche brosse caisse campagne case cause chaîne"
        " chanson chasse cible clé clef commande commune corde côte couche coupe course crème dame"
        " danse date demande douche enquête enveloppe épaule épice face façon faute fiche foule"
        " gare gomme grippe guerre herbe huile jambe jupe loi lune mode moitié mort mouche méthode"
        " nappe neige ombre pêche perle phrase pile pilule pince piste planète pointe police poste"
        " poudre preuve prune puce race rame rencontre roue rose sauce soupe source tarte taxe télé"
        " terre tige touche tour toux tribu trousse tuile vague vente veste victime vigne virgule"
        " visite vis gousse tortue cuisse brioche quiche crêpe carafe casserole louche gélule"
        " capsule ampoule dose brique boule figue amande courge betterave échalote girafe chèvre"
        " guêpe boutique clinique musique grande petite seule longue grosse haute autre courte",
        "": "-ogénie musée lycée trophée apogée génie incendie parapluie foie côté été comité"
        " traité député pâté karaté mercure stade grade silence squelette père frère caractère"
        " mystère cimetière territoire laboratoire mémoire magazine domaine athée comté arrêté"
        " mille",
    }
)
_NUMBER = r"(?P<n>(?:\d{1,3}(?:[ .\u00a0\u202f]\d{3})+|\d+)(?<=1)(?<![179]1)|1|1[ .]001)"
_LABELS = (
    r"\b(?i:page|chapitre|numéro|ligne|type|partie|section|article|scène|acte|étape|niveau"
    r"|phase|version|annexe|chambre|en|an)\s"
)
SHORT_MONTHS = {
    "janv": 1,
    "févr": 2,
    "fév": 2,
    "avr": 4,
    "juil": 7,
    "sept": 9,
    "oct": 10,
    "nov": 11,
    "déc": 12,
}
_PHONE = (
    r"(?P<phone>0\d(?:[ .-]?\d\d){4}|0(?: 8\d\d)(?: \d{3}){2}"
    r"|\+\d{1,3}(?:[ .-]\(?\d{1,3}\)?){3,6})(?![\w]|[.,]\d)"
)
_NAMED = r"commande|suivi|dossier|réservation|client|compte|série|confirmation|facture|référence"
_CODE = (
    r"\b(?i:(?:code|pin|otp|mot de passe|siret|siren)"
    r"(?: (?:pin|promo|secret|sms|confidentiel|de \w+|d['’]\w+|à \d \w+)){0,2}"
    r"|se termin(?:ant|e|ent|ait) par"
    rf"|(?:numéro|n[°ºo]) (?:de )?(?:{_NAMED})|(?:{_NAMED}) (?:numéro|n[°ºo]))"
    r"(?: est| sera)?(?: le)?(?:[ \u00a0\u202f]?:)?\s?"
)
"""Text before a number that is read digit by digit; a post code is not."""
_PARTS = (
    r"\b(?i:page|étape|partie|épisode|question|tour|niveau|note|risque|indice)"
    r"(?: est)?(?: de)?(?:[ \u00a0]?:)?\s"
)
_UNTIL = r"\b(?:[Ee]xpir\w+|[Vv]alable jusqu'(?:en|au)|[Vv]alidité ?:?)(?: en| fin| :)?\s"
"""Text before the month and the year until which a card is valid: 08/27."""
_KINGS = (
    "Louis|Henri|François|Napoléon|Charles|Philippe|Paul|Benoît|Élisabeth|Elisabeth|Guillaume"
    "|Catherine|Jean|Pie|Léon|Grégoire|Clément|Innocent|Alexandre|Nicolas|Pierre|Frédéric|George"
    "|Georges|Édouard|Edouard|Jacques|Richard|Ferdinand|Léopold|Albert|Baudouin|Ramsès|Alphonse"
    "|Isabelle|Marie|Clovis|Robert|Hugues|Othon|Rodolphe|Maximilien|Joseph|Vatican"
)
_DAYS = "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
_CHAPTERS = "[Cc]hapitre|[Tt]ome|[Aa]cte|[Ss]cène|[Ll]ivre|[Tt]ype|[Vv]olume|[Aa]nnexe|[Pp]hase"

BEHIND = re.compile(
    r"(?:[\d .]*[02-68])?1|\d{1,3}/\d{1,3}|\d{1,3}[ex]|½|7"
    r"|[IVX]{1,6}(?:er?|ᵉ) s\.|\d{1,2} [a-zéû]{3,5}\."
)
"""Text from a number on behind which the rules look at another word."""


def _one(match: re.Match[str]) -> str | None:
    number, noun = int(re.sub(r"\D", "", match["n"])), match["noun"]
    if number > 1:
        if noun[-1] not in "sx":
            return None
        noun = noun if noun == "fois" else noun[:-1]
    return count(number, "f") if _GENDERS.of(noun) == "f" else None


def _half(match: re.Match[str]) -> str | None:
    return "une demi" if _GENDERS.of(match["noun"]) == "f" else None


def _dial(match: re.Match[str]) -> str:
    plus, groups = "+" in match.group(), re.findall(r"\d+", match["phone"])
    if len(groups) == 1:
        groups = re.findall(r"\d\d", groups[0])
    words = [
        " ".join(["zéro"] * (len(group) - len(group.lstrip("0")))) + f" {_rest(group)}"
        for group in groups
    ]
    return ("plus " if plus else "") + ", ".join(word.strip() for word in words)


def _rest(group: str) -> str:
    digits = group.lstrip("0")
    return cardinal(int(digits)) if digits else ""


def _short_month(match: re.Match[str]) -> str:
    return date(int(match["day"]), SHORT_MONTHS[match["month"]], None, "")


def _century(match: re.Match[str]) -> str | None:
    value, mark = roman_value(match["roman"]), match["mark"].replace("ᵉ", "e").replace("ʳ", "r")
    return ordinal(value, mark) if (value == 1) == (mark in ("er", "re")) else None


def _of_century(match: re.Match[str]) -> str | None:
    """Read XIXe s., whose full stop stays."""
    century = _century(match)
    return f"{century} siècle" if century else None


def _hours_and_minutes(match: re.Match[str]) -> str:
    hour, minute = int(match["hour"]), int(match["minute"])
    hours = f"{count(hour, 'f')} heure{'s' if hour > 1 else ''}"
    return f"{hours} {count(minute, 'f')} minute{'s' if minute > 1 else ''}"


def _lasting(match: re.Match[str]) -> str | None:
    """Read hours that are no time of day: 35h, 151,67 h."""
    number, part = int(match["n"]), match["part"]
    if not part:
        return f"{count(number, 'f')} heures" if number > 24 else None
    zero = "zéro " if part[0] == "0" else ""
    return f"{cardinal(number)} virgule {zero}{cardinal(int(part))} heure{'s' * (number > 1)}"


def _timed(match: re.Match[str]) -> str:
    """Read the time of a race, in hours, minutes, seconds and parts: 2h01'39", 9"58."""
    found = match.groupdict()
    parts = [
        f"{count(n, 'f')} {unit}{'s' if n > 1 else ''}"
        for name, unit in (("hour", "heure"), ("minute", "minute"), ("second", "seconde"))
        if (n := int(found.get(name) or 0))
    ]
    return " ".join([*parts, cardinal(int(found["part"]))] if found.get("part") else parts)


def _scale(match: re.Match[str]) -> str:
    return "un " + ordinal(int(re.sub(r"\D", "", match["n"])))


def _article(match: re.Match[str]) -> str:
    """Read the number of an article of a law: L. 121-1."""
    return " tiret ".join(cardinal(int(part)) for part in match["n"].split("-"))


_pair, _dated = shared.linked(cardinal, " "), shared.dated(date)


def _spoons(match: re.Match[str]) -> str:
    number = int(match["n"])
    return f"{count(number, 'f')} cuillère{'s' * (number > 1)} à {match['of']} et demie"


def _and_a_half(match: re.Match[str]) -> str:
    number = int(match["n"])
    noun, gender = {"h": ("heure", "f"), "kg": ("kilogramme", "m"), "l": ("litre", "m")}[
        match["unit"]
    ]
    return f"{count(number, gender)} {noun}{'s' * (number > 1)} et demi{'e' * (gender == 'f')}"


def _joined(match: re.Match[str]) -> str:
    number, part = int(match["n"]), match["part"]
    noun = ("mètre" if match["unit"] == "m" else "euro") + ("s" if number > 1 else "")
    zero = "zéro " if part[0] == "0" else ""
    return f"{cardinal(number)} {noun}" + (f" {zero}{cardinal(int(part))}" if int(part) else "")


RULES = (
    rule(_PHONE, _dial),
    rule(r"(?P<phone>[12](?: \d\d){3}(?: \d{3}){2}|\d\d \d\d(?: \d{3}){3})(?!\w)", _dial),
    shared.seats(cardinal, "sièges?|places?|rangée|porte|quai|voie"),
    *shared.long_codes(cardinal),
    *shared.vehicles(cardinal),
    *shared.parts_of(
        cardinal, "sur", _PARTS, "tâches|questions|points|étoiles|étapes|pages|personnes"
    ),
    rule(
        r"(?P<one>\d{1,2},\d{1,2})/(?P<two>\d+)(?![\d/])", shared.rated(cardinal, "virgule", "sur")
    ),
    rule(r"(?P<one>\d\d)/(?P<two>\d{1,2})(?![\d/])", _pair, r"\b(?:[Tt]ension|TA)\b[\w ]{0,20}:? "),
    rule(r"(?P<n>\d{1,2})x(?=/j(?!\w))", lambda m: f"{count(int(m['n']), 'f')} fois"),
    rule(
        r"(?P<hour>\d{1,2}) ?h ?(?P<minute>\d{1,2}) ?min ?(?P<second>\d{1,2}) ?s(?!\w)",
        lambda m: (
            f"{_hours_and_minutes(m)} {count(int(m['second']), 'f')}"
            f" seconde{'s' if int(m['second']) > 1 else ''}"
        ),
    ),
    rule(
        r"(?P<one>\d{2,3})/(?P<two>\d{2,3})(?P<unit> mmHg)(?!\w)",
        shared.linked(cardinal, " sur ", " millimètres de mercure"),
    ),
    rule(r"(?P<one>\d\d)(?P<two>\d\d)(?!\w|[.,]\d)", _pair, r"\b[Aa]ppel\w+ (?:le|au)\s"),
    rule(r"\d{3,}(?:[ -]\d{3,})*(?![\d.,/-]*[\d%]| \d)", shared.spelled(cardinal), _CODE),
    rule(r"(?P<one>(?:19|20)\d\d)/(?P<two>\d\d(?:\d\d)?)(?![\d/])", _pair),
    shared.dates(date, ".-"),
    shared.month_years(MONTHS, " ", cardinal),
    rule(
        r"(?P<day>\d{1,2}(?=/0)|\d\d)/(?P<month>\d\d)(?![\w/])",
        _dated,
        r"\b(?:[Ll]e|[Dd]u|[Aa]u)\s",
    ),
    rule(r"(?P<day>[2-9])/(?P<month>1[0-2])(?![\w/])", _dated, r"\b(?:[Ll]e|[Dd]u)\s"),
    rule(
        r"(?P<day>1[3-9]|2\d|3[01])/(?P<month>\d)(?![\w/])",
        _dated,
        r"\b(?:[Ll]e|[Dd]u|[Aa]u)\s",
    ),
    rule(
        r"(?P<day>\d{1,2})/(?P<month>\d{1,2})(?![\w/])",
        _dated,
        rf"\b(?i:{_DAYS}|(?:lun|mar|mer|jeu|ven|sam|dim)\.),?\s",
    ),
    rule(rf"(?P<day>\d{{1,2}}) (?P<month>{'|'.join(SHORT_MONTHS)})\.(?= [a-zà-ÿ]|,)", _short_month),
    rule(r"(?P<n>\d{1,3})e min\.?(?!\w)", lambda m: f"{ordinal(int(m['n']), 'e')} minute"),
    rule(
        r"(?P<n>\d{1,2})[-–](?P<to>\d{1,2}) ?h(?!\w| ?\d)",
        lambda m: f"{count(int(m['n']), 'f')} à {count(int(m['to']), 'f')} heures",
    ),
    rule(
        r"(?P<n>\d{1,3})(?:,(?P<part>\d{1,2}))? ?h(?!\w| ?\d)",
        _lasting,
    ),
    rule(r"(?:(?P<hour>\d{1,2})h)?(?P<minute>\d{1,2})['’′](?P<second>\d\d)[\"”″]", _timed),
    rule(r"(?P<second>\d{1,2})[\"”″](?P<part>\d\d?)(?!\w)", _timed),
    rule(r"24 ?h ?/ ?24(?!\w)", lambda m: "vingt-quatre heures sur vingt-quatre"),
    rule(r"7 ?j ?/ ?7(?!\w)", lambda m: "sept jours sur sept"),
    rule(r"(?P<hour>\d{1,2}) ?h ?(?P<minute>\d{1,2}) ?min(?!\w)", _hours_and_minutes),
    rule(r"(?P<n>\d{1,4}) ?(?P<unit>€|m)(?P<part>\d\d)(?!\w|[.,]\d)", _joined),
    rule(r"(?P<n>\d{1,2})/20(?![\d/])", lambda m: f"{cardinal(int(m['n']))} sur vingt"),
    rule(r"(?P<n>\d+)(?: 1/2| ?½) c\. à (?P<of>café|soupe)(?!\w)", _spoons),
    rule(r"(?P<n>\d+)(?: 1/2| ?½) ?(?P<unit>h|kg|l)(?!\w)", _and_a_half),
    rule(r"(?P<n>\d+)(?: 1/2| ?½)(?!\d)", lambda m: f"{cardinal(int(m['n']))} et demi"),
    rule(r"(?:1/2|½) (?=c\. à )", lambda m: "une demi-"),
    rule(r"(?:1/2|½)(?= (?P<noun>\w+))", _half),
    rule(rf"{_NUMBER}(?= (?P<noun>[^\W\d_][\w-]+))", _one, unless=_LABELS),
    shared.laps(cardinal, "virgule"),
    forms.expiries(lambda month, year: f"{MONTHS[month - 1]} {cardinal(year)}", _UNTIL),
    forms.moments(date, time, cardinal, {"+": " plus ", "-": " moins "}),
    forms.aircraft(cardinal),
    forms.scales(cardinal, " à "),
    forms.short_dates(date),
    rule(r"1/(?P<n>\d{1,3}(?:[ .\u00a0\u202f]000)+)(?!\w)", _scale),
    rule(r"16/9(?![\d/])", lambda m: "seize neuvièmes"),
    rule(r"(?P<one>\d)/(?P<two>\d)(?![\d/])", _pair, r"\b[Tt]h\.\s"),
    rule(r"(?P<n>\d{1,4}(?:-\d{1,3}){1,2})(?![\w-])", _article, r"\b[LRD]\. ?"),
    rule(
        r"(?P<one>\d{1,2})[-–](?=\d{1,2} (?:" + "|".join(MONTHS) + r")(?!\w))",
        lambda m: f"{cardinal(int(m['one']))} au ",
        r"\b[Dd]u ",
    ),
    *shared.ratios(cardinal, " pour ", " à "),
    *shared.inches(
        cardinal,
        "virgule",
        "pouces",
        ("un demi-pouce", "un quart de pouce", "trois quarts de pouce"),
    ),
    shared.multiples(lambda number: count(number, "f"), "virgule", "une fois", "fois", "à"),
    shared.times(cardinal, "virgule", "fois"),
)

ARTICLES = (
    rule(r"(?P<law>[LRD])(?P<n>\d{1,4}(?:-\d{1,3}){1,2})\Z", lambda m: f"{m['law']} {_article(m)}"),
)
"""Articles of a law: L121-1."""
ON_DAY = re.compile(r"\b(?:[Ll]es?|[Dd]u|[Aa]u|[Cc]e|[Cc]haque) \Z")
"""Text before mar. and mer. where they are days, and no words."""

NUMERALS = (
    rule(rf"{ROMAN}(?P<mark>er|e|ᵉ) s\.(?= [^A-ZÀ-ÝŒ]|[,;:)])", _of_century),
    rule(rf"{ROMAN}(?P<mark>er|e|ᵉ) s(?=\.)", _of_century),
    rule(rf"{ROMAN}(?P<mark>er|re|ème|es?|ᵉʳ?)(?!\w)", _century),
    rule(
        rf"{ROMAN}(?!\w)",
        lambda m: cardinal(roman_value(m["roman"])),
        rf"\b(?:{_KINGS}|{_CHAPTERS})\s",
    ),
)
