"""Marks that cite a source, `It is so.[1]`, which are not read.

The text around a number in brackets tells them from content: `items[1]`, `see [1]`, `[1] First`.
Raised numbers are notes, too (`so.³`), unless they are powers.
"""

from __future__ import annotations

import re

from realtime_tts.text.characters import is_word_character
from realtime_tts.text.marks import Step

SOURCES, RAISED = "【\ue200", "⁰¹²³⁴⁵⁶⁷⁸⁹"
"""The characters that begin the marks of tools, and those of raised numbers."""
RAISING = str.maketrans("0123456789-", f"{RAISED}⁻")
_MARK = re.compile(r"[1-9]\d{0,2}(?:(?:, ?|[-–])[1-9]\d{0,2})*")
_DOUBLED = re.compile(r"\[([^][]+)\]")
_TOOL = re.compile(r"cite_(?:start|end)|(?:cite|citation|source): ?\d[\d., -]*")
_SOURCE = re.compile(r"【\d[\d:]*†[^】\n]{0,80}】|\ue200[^\ue201\n]{0,200}\ue201")
"""Marks of tools that search: `[cite: 1, 2]`, `【4†source】`, and one in private characters."""
_OPEN_SOURCE = re.compile(r"【(?:\d[\d:]*(?:†[^】\n]{0,80})?)?\Z|\ue200[^\ue201\n]{0,200}\Z")
_CLOSED = re.compile(r"[.,;:!?…。，；：！？][\"'”’»)]?\Z|[\"”»]\Z")
_LONG_WORD = re.compile(r"(?<!\d )(?<![^\W_])[^\W\d_]{4,}\Z")
"""A word that is no symbol, nor a unit behind a number: 20 meter²."""
_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»)]* ?\Z")
_CLAUSE = re.compile(r"[,;”»，；]\Z")
_QUOTATION = re.compile(r"[\w.!?…)][\"“’‘] ?\Z")
"""A mark that closes a quotation; one that opens it does not follow a word directly."""
_ASIDE = re.compile(r"(?:\A|[\s\"“„])\([^()\n]*\) ?\Z")
"""Parentheses behind a space are prose; behind a word they are a call: split(",")[1]."""
_TOKEN = re.compile(r"([^\s(\"“‘«„*。，；：！？、（「]+) ?\Z")
_NUMBER = re.compile(r"[$€£]?\d+(?:[.,]\d+)*%?|[%€]")
_OPERATED = re.compile(r" ?(?:[(=+*/>-]|<(?!/))")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_LISTS = frozenset(
    "array arr list lst items nums args argv row rows col cols matrix vec vector str string dict "
    "tuple obj params grid vals values elements tokens data index".split()
)
"""Names that programs give to what has numbered elements."""
_REFERRING = frozenset(
    "abb abbildung abschnitt and answer are as at avec bei by capítulo cf chapitre chapter "
    "choose con dans de en enter eq equals es est et fig figura figure footnote frage from "
    "fuente in is ist item kap kapitel line mit nach no note nr number nummer numéro número o "
    "oder of on opción option or ou page par paso por pregunta press página quelle question ref "
    "reference schritt sección section see seite siehe sind son sont source step tab tabelle "
    "tabla table tableau to touche type und ver vgl voir von véase was with y zu étape "
    "com con di domanda escolha fonte nota oppure opção pagina passo per pergunta "
    "premi pressione resposta risposta são scegli seção sezione sono tabela tabella tasto tecla "
    "vedi veja в вариант вопрос выберите глава и из или источник кнопка кнопку на нажмите "
    "номер ответ по пункт раздел рис рисунок с см смотри строка таблица страница шаг это "
    "그림 단계 또는 문제 및 버튼 번호 선택지 옵션 참고 참조 페이지 표 항목".split()
)
"""Words behind which a number in brackets is a part of the sentence, in the ten languages of
Qwen3-TTS."""
_REFERRING_ENDS = tuple(
    "ステップ ボタン 参照 図 図表 文献 番号 表 質問 選択肢 参见 参阅 图 按钮 步骤 见 选项 "
    "问题".split()
)
"""Ends of such words in text without spaces between words."""


def is_citation(label: str, before: str, behind: str, ended: bool) -> bool | None:
    """Return whether brackets with the text `label` cite a source; None if more text is needed.

    `before`, `behind`: the text around them; before them at least its last word.
    """
    if _TOOL.fullmatch(label):
        return True
    doubled = _DOUBLED.fullmatch(label)
    if doubled is not None:
        label = doubled.group(1)
    if not _MARK.fullmatch(label) or is_word_character(behind[:1]) or behind[:1] == "(":
        return False
    spaced = before[-1:] == " "
    if _SENTENCE.search(before) or _CLAUSE.search(before):
        return not (spaced and _last_word(before).rstrip(".").lower() in _REFERRING)
    if not _cites(before, spaced):
        return False
    if spaced:
        return doubled is not None or behind[:1] in ("", *"\n.,;!?[)。，")
    return None if behind in (" ", "<") and not ended else not _OPERATED.match(behind)


def source(text: str, ended: bool) -> Step:
    """Read a mark at the beginning that only tools write; return its length."""
    match = _SOURCE.match(text)
    if match is not None:
        return match.end()
    return None if not ended and _OPEN_SOURCE.match(text) else 0


def is_note(before: str, *, in_tag: bool) -> bool:
    """Return whether a raised number is the mark of a note, and not a power.

    `in_tag`: it stands between tags, `<sup>2</sup>`, which also raise a note behind a word.
    """
    return bool(_CLOSED.search(before) or (in_tag and _LONG_WORD.search(before)))


def _last_word(text: str) -> str:
    match = _TOKEN.search(text)
    return match.group(1) if match else ""


def _cites(before: str, spaced: bool) -> bool:
    """Return whether the last word of a text can have a source."""
    word = _last_word(before)
    if _QUOTATION.search(before) or _ASIDE.search(before):
        return True
    if _NUMBER.fullmatch(word) or before.endswith(") "):
        return True
    refers = word.lower() in _REFERRING or word.endswith(_REFERRING_ENDS)
    known = refers or word.lower() in _LISTS or _INNER_CAPITAL.search(word)
    short = not spaced and len(word) < 3 and word.islower() and word.isascii()  # xs[1]
    return len(word) > 1 and not short and not known and _WORD.fullmatch(word) is not None
