"""Chinese (Mandarin)."""

from __future__ import annotations

from realtime_tts.text.languages import chinese_rules, tables
from realtime_tts.text.languages.chinese_words import cardinal, count, date, time, year
from realtime_tts.text.languages.language import Currency, Language

CHINESE = Language(
    name="chinese",
    cardinal=cardinal,
    count=count,
    ordinal=lambda n, mark: cardinal(n),
    year=year,
    time=time,
    date=date,
    decimal_mark=".",
    group_marks=",",
    ordinal_marks="",
    point="点",
    dot="点",
    minus="负",
    plus="加",
    plus_or_minus="正负",
    to="到",
    percent="百分之",
    degrees=tables.invariable("度"),
    number_sign="",
    and_sign="和",
    operators={"+": "加", "=": "等于", "×": "乘", "*": "乘", "÷": "除以"} | {"-": "减", "−": "减"},
    currencies=tables.by_name(
        {
            "¥ ￥ CNY": Currency(tables.invariable("元")),
            "HK$ HKD": Currency(tables.invariable("港元")),
            "$ USD US$": Currency(tables.invariable("美元")),
            "€ EUR": Currency(tables.invariable("欧元")),
            "£ GBP": Currency(tables.invariable("英镑")),
        }
    ),
    units=tables.nouns(
        tables.invariable,
        "km 公里|m 米|cm 厘米|mm 毫米|kg 公斤|g 克|mg 毫克|t 吨|L 升|l 升|ml 毫升|mL 毫升"
        "|km/h 公里每小时|m/s 米每秒|m² 平方米|㎡ 平方米|km² 平方公里|m³ 立方米|°C 摄氏度"
        "|℃ 摄氏度|°F 华氏度|s 秒|ms 毫秒|min 分钟|h 小时|KB 千字节|MB 兆字节|GB 吉字节"
        "|TB 太字节|Mbps 兆比特每秒|Hz 赫兹|MHz 兆赫|GHz 吉赫|W 瓦|kW 千瓦|MW 兆瓦|kWh 千瓦时"
        "|V 伏|A 安|mAh 毫安时|dB 分贝|kcal 千卡|kJ 千焦"
        "|M/s 兆每秒|MB/s 兆字节每秒|Mb/s 兆比特每秒|hPa 百帕|bar 巴"
        "|μg 微克|µg 微克|μmol 微摩尔|kPa 千帕|Ah 安时|mmol 毫摩尔|mol 摩尔|mmol/L 毫摩尔每升"
        "|m/s² 米每二次方秒|Ω 欧姆|kΩ 千欧|bpm 次每分钟|N·m 牛米|Nm 牛米",
    ),
    scales=tables.nouns(tables.invariable, "万 万|亿 亿"),
    fractions={},
    mixed="又",
    money="",
    of_scale=lambda noun: noun,
    percent_before=True,
    spaced=False,
    keys={"*": "星号", "#": "井号"},
    signs={
        "→": "，",
        "×": "乘",
        "≈": "约等于",
        "√": "根号",
        "π": "派",
        "∞": "无穷大",
        "✓": "是",
        "✗": "否",
        "∫": "积分",
        "∑": "求和",
        "♭": "降",
        "♯": "升",
        "≤": "小于等于",
        "≥": "大于等于",
    }
    | {"≠": "不等于", "§": "第"},
    comparisons={"<": "小于", ">": "大于"},
    powers={"2": "的平方", "3": "的立方", "": "的", "behind": "次方"},
    per="每",
    addresses={".": "点", "@": "艾特", "_": "下划线", "-": "杠", "/": "斜杠", ":": "冒号"},
    rules=chinese_rules.RULES,
    behind=chinese_rules.BEHIND,
)
