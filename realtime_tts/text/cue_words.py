"""The words of stage directions, in the languages that Qwen3-TTS speaks."""

from __future__ import annotations


def _forms(verbs: str) -> set[str]:
    """Return the third person and the participle of English verbs, written `laughs|laughing`."""
    return {form for verb in verbs.split() for form in verb.split("|")}


_SOUNDS = _forms(
    "speaks|speaking "
    "laughs|laughing chuckles|chuckling giggles|giggling snickers|snickering chortles|chortling "
    "cackles|cackling guffaws|guffawing snorts|snorting sighs|sighing gasps|gasping "
    "groans|groaning moans|moaning grunts|grunting growls|growling hums|humming coughs|coughing "
    "sneezes|sneezing sniffs|sniffing sniffles|sniffling sobs|sobbing weeps|weeping cries|crying "
    "yawns|yawning exhales|exhaling inhales|inhaling gulps|gulping swallows|swallowing "
    "wheezes|wheezing pants|panting hiccups|hiccuping burps|burping whistles|whistling "
    "whispers|whispering murmurs|murmuring mumbles|mumbling mutters|muttering shouts|shouting "
    "yells|yelling screams|screaming squeals|squealing stammers|stammering stutters|stuttering "
    "sings|singing scoffs|scoffing tuts|tutting purrs|purring hisses|hissing huffs|huffing"
)
_GESTURES = _forms(
    "smiles|smiling grins|grinning smirks|smirking frowns|frowning winks|winking nods|nodding "
    "shrugs|shrugging blushes|blushing blinks|blinking waves|waving bows|bowing shivers|shivering "
    "shudders|shuddering trembles|trembling beams|beaming pouts|pouting winces|wincing "
    "grimaces|grimacing claps|clapping hugs|hugging facepalms|facepalming pauses|pausing "
    "hesitates|hesitating ponders|pondering fidgets|fidgeting curtsies|curtsying salutes|saluting"
)
_FOREIGN = set(
    "lacht lachend kichert kichernd seufzt seufzend hustet hustend räuspert flüstert flüsternd "
    "lächelt lächelnd grinst grinsend nickt nickend gähnt gähnend schluchzt weint schnaubt "
    "zwinkert keucht stöhnt schmunzelt schmunzelnd "
    "rit rire rires soupire soupir soupirant riant tousse chuchote chuchotant murmure sourit "
    "souriant ricane sanglote pleure bâille renifle glousse hésite "
    "ríe risas suspira suspirando riendo tose susurra susurrando sonríe sonriendo llora solloza "
    "bosteza gime carraspea jadea titubea guiña "
    "ridacchia ridacchiando ridendo sospira sospirando tossisce tossendo sussurra sussurrando "
    "mormora sorride sorridendo sogghigna singhiozza piange piangendo sbadiglia geme annuisce "
    "sbuffa esita balbetta ansima "
    "rindo gargalha gargalhando tossindo sorri sorrindo soluça soluçando choraminga bocejando "
    "boceja acena pigarreia gagueja hesita ofega "
    "смеётся смеется смеясь хихикает хихикая усмехается усмехаясь улыбается улыбаясь вздыхает "
    "вздыхая кашляет откашливается шепчет шепча шёпотом плачет плача рыдает всхлипывает "
    "всхлипывая зевает зевая кивает кивая подмигивает подмигивая хмыкает вздрагивает краснеет "
    "стонет бормочет".split()
)
ALONE = frozenset(
    "laugh laughter chuckle giggle giggles sigh gasp groan grunt cough sob sniff sniffle yawn gulp "
    "whisper smile grin smirk wink nod shrug pause beat silence applause facepalm snort hum "
    "lachen seufzer pausa risa suspiro soupirs pause beifall gelächter".split()
)
"""Nouns and plain verb forms that are cues if only words of `MANNERS` stand before them."""
ACTED = frozenset(_SOUNDS | _GESTURES | _FOREIGN)
"""Verbs that direct an actor, in stars, parentheses and brackets."""
_MOODS = frozenset(
    (
        "excitement sadness joy anger fear surprise enthusiasm sarcasm concern curiosity "
        "excited excitedly sad sadly angry angrily happy happily nervous nervously curious "
        "curiously sarcastic sarcastically mischievous mischievously playful playfully cheerful "
        "cheerfully calm calmly serious seriously surprised shocked scared worried confused "
        "annoyed frustrated tired bored relieved hopeful sorrowful melancholy wistful embarrassed "
        "disappointed amused thoughtful dramatic dramatically warm warmly gentle gently soft "
        "softly quiet quietly loud loudly slow slowly fast quickly rushed empathetic sympathetic "
        "apologetic reassuring confident friendly enthusiastic enthusiastically delighted joyful "
        "proud determined flustered panicked panicking deadpan monotone resigned awe impressed "
        "skeptical tense urgent urgently breathless tearful aufgeregt fröhlich traurig wütend "
        "leise ernst excité triste joyeux emocionado alegre enojado entusiasta felice arrabbiato "
        "allegro animado feliz nervoso sério весело грустно радостно серьёзно взволнованно"
    ).split()
)
_EFFECTS = frozenset(
    (
        "music applauding cheering cheers inaudible gunshot explosion footsteps thunder crowd "
        "laughter starts clears breathes breathing inhale exhale woo gelächter aplausos ride ri "
        "musica música музыка"
    ).split()
)
BRACKETED = ACTED | ALONE | _MOODS | _EFFECTS
"""Words of a cue in brackets. Nobody writes emphasis in them, so moods and sounds count as well."""
SPOKEN_SO = _MOODS | frozenset(
    "whispers whispering murmurs murmuring mumbles mumbling mutters muttering shouts shouting "
    "yells yelling screams screaming sings singing flüstert flüsternd chuchote chuchotant susurra "
    "susurrando sussurra sussurrando шепчет шепча шёпотом stammers stammering stutters "
    "stuttering".split()
)
"""Words that say how the text behind the cue must be spoken."""
MANNERS = frozenset(
    "a an the very slightly bit little soft quiet deep long short light small loud nervous gentle "
    "heavy low big brief awkward dramatic then still almost in with kurz leise laut tief sanft "
    "ligeramente suavemente doucement légèrement profondément piano appena тихо громко тяжело "
    "глубоко слегка нервно мягко".split()
)
"""Words that may stand before the first word of a cue; so may any adverb in -ly and -mente."""
COMPANIONS = frozenset(
    "a an the and then with in at to of for on under again away up down out off his her its their "
    "your my self himself herself little bit moment while breath voice tone throat head eyes eye "
    "shoulders hands laughter laugh laughing sigh smile tears relief playing stops starts fades "
    "harder louder softer quietly slowly deeply deep long short soft sharply accent drumroll "
    "se sich leise auf tief doucement profondément suavemente nervously happily piano baixinho "
    "alto baixo тихо громко тяжело глубоко слегка нервно мягко".split()
)
"""Words that may follow the first word of a cue in brackets and parentheses."""
NOUNS = frozenset("beams bows pants singing speaking waves".split())
"""Words that alone in parentheses are rather what the sentence is about: trousers (pants)."""
PHRASES = frozenset(
    (
        "clears throat, clearing throat, clears his throat, clears her throat, clears my throat, "
        "clears their throat, takes a breath, takes a deep breath, deep breath, taking a deep "
        "breath, shakes head, shakes his head, shakes her head, shakes my head, rolls eyes, rolls "
        "her eyes, rolls his eyes, rolls my eyes, raises eyebrow, raises an eyebrow, raises "
        "eyebrows, thinks for a moment, leans in, leans closer, leans in closer, leans back, "
        "leans forward, looks away, looks down, looks around, looks up, tilts head, tilts her "
        "head, tilts his head, bursts out laughing, breathes deeply, breathes heavily, holds "
        "breath, scratches head, scratches his head, scratches her head, snaps fingers, drum "
        "roll, drumroll please, chef's kiss, long pause, short pause, dramatic pause, starts "
        "laughing, starts crying, strong accent, räuspert sich, seufzt tief, holt tief luft, "
        "atmet tief ein, nickt zustimmend, se racle la gorge, prend une grande inspiration, se "
        "ríe, se aclara la garganta, respira hondo, si schiarisce la voce, schiarisce la voce, fa "
        "un respiro profondo, respira profondamente, scuote la testa, limpa a garganta, respira "
        "fundo, suspira fundo, balança a cabeça, dá de ombros, прочищает горло, делает глубокий "
        "вдох, глубоко вздыхает, качает головой, пожимает плечами"
    ).split(", ")
)
"""Cues that no rule can tell from text."""
WHOLE = frozenset(
    "笑 大笑 微笑 轻笑 苦笑 偷笑 坏笑 笑声 叹气 叹了口气 叹息 咳嗽 咳 哭 哭泣 抽泣 停顿 沉默 "
    "掌声 鼓掌 低声 小声 轻声 低语 耳语 吸气 深吸一口气 呼气 清嗓子 清了清嗓子 点头 点点头 摇头 "
    "摇摇头 眨眼 眨眨眼 耸肩 耸耸肩 打哈欠 哈欠 惊讶 兴奋 开心 生气 难过 害羞 音乐 挠头 "
    "笑い 爆笑 笑いながら 微笑みながら 微笑んで くすくす笑う くすくす笑いながら 泣きながら ため息 "
    "ため息をつく ため息をつきながら 深いため息 溜息 溜め息 咳払い 咳払いをする 小声で "
    "ささやき声で 囁き声で 囁くように うなずく うなずきながら 頷く 頷きながら 首を横に振る "
    "首をかしげる 深呼吸 深呼吸する 息を吸う 照れながら 照れ笑い 驚いて 嬉しそうに 楽しそうに "
    "悲しそうに 優しく微笑む にっこり ウインク risos".split()
) | frozenset(
    (
        "웃으며, 웃으면서, 크게 웃으며, 미소 지으며, 미소를 지으며, 미소지으며, 한숨을 쉬며, "
        "한숨 쉬며, 한숨을 내쉬며, 고개를 끄덕이며, 끄덕이며, 고개를 저으며, 속삭이며, 속삭이듯, "
        "작은 목소리로, 울먹이며, 흐느끼며, 하품하며, 기침하며, 깊은 한숨을 쉬며, 윙크하며, 놀라며"
    ).split(", ")
)
"""Cues that are one of these as a whole: their words are not parted, or have many forms."""
ENCLOSED = WHOLE | frozenset(
    (
        "拍手, 沈黙, 笑い声, 泣き声, あくび, 泣, 涙, 汗, 웃음, 웃음소리, 큰 웃음, 한숨, 깊은 한숨, "
        "박수, 박수 소리, 헛기침, 침묵, 잠시 침묵, 잠시 멈춤, 미소, 하품, 속삭임, 환호, 울음, "
        "ride, ride di gusto, risata, risate, sospiro, applausi, silenzio, ri, ri baixinho, "
        "ri alto, risada, risadas, gargalhada, gargalhadas, aplausos, silêncio, смех, смешок, "
        "вздох, пауза, аплодисменты, тишина, всхлип, улыбка"
    ).split(", ")
)
"""More of them that may also be emphasised, and so are cues in brackets and parentheses only."""
GLOSSES = frozenset({"ride"})
"""Cues that are a word of another language: `ride` is Italian for laughs. In parentheses behind a
word they are text."""
SUBJECTS = frozenset(
    "i you he she it we they who that which and also never always often still just really "
    "er sie es wir ihr wer der die das man und nie immer il elle on ils elles qui et él ella "
    "ellos ellas que y nunca siempre to not io tu lui lei noi voi loro che chi non mai sempre si "
    "eu você ele ela nós vocês eles elas quem não já я ты он она оно мы вы они кто что не никогда "
    "всегда a an the un una uno une el la las los le les o os as uma gli lo il".split()
)
"""Words behind which the verb of a sentence comes, or a noun: take a *pause*."""


def _beginnings(entries: frozenset[str]) -> frozenset[str]:
    return frozenset(entry[:n] for entry in entries for n in range(1, len(entry) + 1))


ACTED_STARTS = _beginnings(ACTED | ALONE | MANNERS)
BRACKETED_STARTS = _beginnings(BRACKETED | ALONE | MANNERS)
PHRASE_STARTS = _beginnings(PHRASES)
WHOLE_STARTS = _beginnings(WHOLE)
ENCLOSED_STARTS = _beginnings(ENCLOSED)
