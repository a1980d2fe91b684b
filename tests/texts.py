"""Text files for tests, patterns for messages about them, and texts that rules act on.

Python, TensorFlow's graphs and the page in the browser have to treat them alike.
"""

import gzip
import json
import random
import re
from pathlib import Path

from keras_transformer.text.markup_alignment import Aligned


def write(path, content, compress=False):
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if compress else content)
    return path


def names(*paths):
    """A pattern that matches messages that contain all of these paths."""
    return "".join(rf"(?=.*{re.escape(str(path))})" for path in paths)


SENTENCES = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))

LANGUAGES = sorted({one.get("language", "") for one in SENTENCES})

# What rules act on, so that random texts of it are hard.
CHARACTERS = [
    *"aAbI1.!?…,;:()\"'“”«»„-–—>#*\n\n\r\t    \u00a0\u3000。！」、",
    "Dr",
    "No",
    "z",
    "long ",
    "word" * 12,
    "😀",
    "str",
]

CHARACTERS += ["\x01", "\x02", "\x03", "\x04", "\x05", "e\u0301", "\u2028", "שלום ", "\x00"]

CHARACTERS += ["\x06", "\v", "\f", "\x85", "\u2029", ">>deu<<", ">>"]


def random_sentences(count, seed=0):
    generator = random.Random(seed)
    return ["".join(generator.choices(CHARACTERS, k=generator.randrange(60))) for _ in range(count)]


PARTS = [
    ("See https://a.org/b?c=d&e=f. Now", "See ⟦0⟧. Now", ["https://a.org/b?c=d&e=f"]),
    ("(www.x.org/y), jo.do@x-y.co.uk!", "(⟦0⟧), ⟦1⟧!", ["www.x.org/y", "jo.do@x-y.co.uk"]),
    ("Dear {name}, {{a.b}} ${c}", "Dear ⟦0⟧, ⟦1⟧ ⟦2⟧", ["{name}", "{{a.b}}", "${c}"]),
    ("%s of %d, %(n)s and %1$s, %.2f", "⟦0⟧ of ⟦1⟧, ⟦2⟧ and ⟦3⟧, ⟦4⟧", ["%s", "%d", "%(n)s", "%1$s", "%.2f"]),
    ("Run `pip install x` <b>now</b>", "Run ⟦0⟧ ⟦1⟧now⟦2⟧", ["`pip install x`", "<b>", "</b>"]),
    ("5 kg, 3.5km, -12,5 °C, 10 %", "⟦0⟧, ⟦1⟧, -⟦2⟧, ⟦3⟧", ["5 kg", "3.5km", "12,5 °C", "10 %"]),
    ("$5.99, 10 €, 471199", "⟦0⟧, ⟦1⟧, ⟦2⟧", ["$5.99", "10 €", "471199"]),
    ("No $1$; $1$2$3 for $1,000.50 or $12", "No ⟦0⟧; ⟦1⟧ for ⟦2⟧ or ⟦3⟧", ["$1$", "$1$2$3", "$1,000.50", "$12"]),
    ("5 men, 100%increase, A4711, 3 cats", "5 men, 100%increase, A4711, 3 cats", []),
    ("I ❤️ you 👩‍👩‍👧 😀😀!", "I ⟦0⟧ you ⟦1⟧ ⟦2⟧!", ["❤️", "👩‍👩‍👧", "😀😀"]),
    ("1️⃣ Go ▶️, 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🙂‍↔️ #️⃣*️⃣ → 2", "⟦0⟧ Go ⟦1⟧, ⟦2⟧ ⟦3⟧ ⟦4⟧ → 2", ["1️⃣", "▶️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🙂‍↔️", "#️⃣*️⃣"]),
    ("@user #topic #3", "⟦0⟧ ⟦1⟧ #3", ["@user", "#topic"]),
    ("Nobody can write ⟦1⟧ or ⟦77⟧", "Nobody can write ⟦0⟧ or ⟦1⟧", ["⟦1⟧", "⟦77⟧"]),
    ("{a}{b}{c}{d}{e}{f}{g}{h}{i}⟦0⟧", "⟦0⟧⟦1⟧⟦2⟧⟦3⟧⟦4⟧⟦5⟧⟦6⟧⟦7⟧{i}[0]", [f"{{{x}}}" for x in "abcdefgh"]),
    (
        "%d%% of %-5.2f, %ld %zu %.*s %<PRIu64>",
        "⟦0⟧ of ⟦1⟧, ⟦2⟧ ⟦3⟧ ⟦4⟧ ⟦5⟧",
        ["%d%%", "%-5.2f", "%ld", "%zu", "%.*s", "%<PRIu64>"],
    ),
    ("%dx%d pixels, v%s, page/%d", "⟦0⟧x⟦1⟧ pixels, v⟦2⟧, page/⟦3⟧", ["%d", "%d", "%s", "%d"]),
    (
        "%{a} #{b} $c $d$ [[e]] $(F) %1 %NAME",
        " ".join(f"⟦{i}⟧" for i in range(8)),
        ["%{a}", "#{b}", "$c", "$d$", "[[e]]", "$(F)", "%1", "%NAME"],
    ),
    ("<0>my sister</0> <1/>, a<b and c>d", "⟦0⟧my sister⟦1⟧ ⟦2⟧, a<b and c>d", ["<0>", "</0>", "<1/>"]),
    (
        "You have {n, plural, one {# coat} other {# coats}}.",
        "You have ⟦0⟧.",
        ["{n, plural, one {# coat} other {# coats}}"],
    ),
    (
        "2024-01-31 at 12:30, +49 30 123456, v1.2.3-rc1",
        "⟦0⟧ at ⟦1⟧, ⟦2⟧, ⟦3⟧",
        ["2024-01-31", "12:30", "+49 30 123456", "v1.2.3-rc1"],
    ),
    ("/usr/bin/x or C:\\dir, 00:00:01,000 --> 2", "⟦0⟧ or ⟦1⟧, ⟦2⟧ --> 2", ["/usr/bin/x", "C:\\dir", "00:00:01,000"]),
    ("and/or he/she, 24/7, 1,234.5, A/B, -ed", "and/or he/she, 24/7, 1,234.5, A/B, -ed", []),
    ("", "", []),
]

ATOMS = [part for text, _, _ in PARTS for part in text.split(" ")]

ATOMS += [
    *"5%s@aB.{}⟦0⟧`<> ",
    "\ufe0f",
    "\u200d",
    "\u20e3",
    "\u2194",
    "kg",
    "€",
    "😀",
    "\x01",
    "\x02",
    "\x03",
    "\n",
    "é",
]


def random_parts(count, seed=0):
    generator = random.Random(seed)
    return ["".join(generator.choices(ATOMS, k=generator.randrange(12))) for _ in range(count)]


HTML_WORDS = ["dog", "cat", "sees", "the", "a.", "Red", "house,", "5", "&amp;", "&lt;b&gt;", "café", "😀", "Then!"]

# What is one piece of a sentence, and how an element says that it is translated or not.
PIECES = [
    *("<!-- a <b> -->", "<code>x  &lt; y</code>", "<button>the <b>dog</b></button>", "<sup><a href='#1'>[1]</a></sup>"),
    *(
        "<select><option>Red</option></select>",
        "<svg><text>the cat</text></svg>",
        "<kbd>the <i translate=''>cat</i></kbd>",
    ),
]

SAID = ["translate=no", "translate='NO'", "class='a notranslate'", "lang=fr", "lang=en-GB", "translate=yes", "lang=''"]

ATTRIBUTES = ["", ' class="x y"', ' title="a &quot;b&quot; &lt;i&gt;"', ' href="?a=1&amp;b=2"', ' data-x=""']


def shuffled(seed):
    """Words in another order, some lost, some new, all aligned at random."""
    generator = random.Random(seed)

    def translate(texts):
        results = []
        for text in texts:
            words = generator.sample(text.split(" "), len(text.split(" ")))
            words = [word for word in words if generator.random() < 0.8] + ["new"] * generator.randrange(3)
            found = " ".join(words)
            origins = [generator.choice([None, *range(len(text))]) for _ in found]
            results.append(Aligned(found, origins))
        return results

    return translate


def random_html(generator, depth=0):
    """A random fragment. Elements are nested as HTML allows, so that the parser changes nothing."""
    parts = []
    for _ in range(generator.randrange(5)):
        kind = generator.random()
        attributes = generator.choice(ATTRIBUTES)
        if kind < 0.5 or depth > 4:
            parts.append(
                " ".join(generator.choices(HTML_WORDS, k=generator.randrange(5))) + generator.choice([" ", "\n  ", ""])
            )
        elif kind < 0.6:
            parts.append(generator.choice(["<br>", f"<img{attributes}>", *PIECES]))
        elif kind < 0.65:
            name = generator.choice(["span", "div"])
            parts.append(f"<{name} {generator.choice(SAID)}{attributes}>{random_html(generator, depth + 3)}</{name}>")
        elif kind < 0.9:
            name = generator.choice(["b", "i", "span", "em", "sub"])
            parts.append(f"<{name}{attributes}>{random_html(generator, depth + 1)}</{name}>")
        else:
            name = generator.choice(["div", "section"])
            parts.append(f"<{name}{attributes}>{random_html(generator, depth + 1)}</{name}>")
    return "".join(parts)


# A source, a translation of it, and what that becomes with its parts.
TOUCHING = [
    ("Mail to a@b.org.", "Ende.⟦0⟧Dann", "Ende. a@b.org Dann"),
    ("Use %s of 5 %", "⟦1⟧⟦0⟧", "5 % %s"),
    ("A %s", "%⟦0⟧", "% %s"),  # "%%s" would be a literal "%s".
    ("<b>bold</b>", "⟦0⟧fett⟦1⟧", "<b>fett</b>"),
    ("{a} now", "现在⟦0⟧是", "现在{a}是"),
]

# A small language whose words translate each other.
WORDS = [("dog", "Hund"), ("cat", "Katze"), ("birds", "Vögel"), ("house", "Haus"), ("garden", "Garten")]

DETERMINERS = [("the", "der"), ("a", "ein"), ("my", "mein"), ("your", "dein")]


def worded(count=200):
    """Sentence pairs of that language."""
    generator = random.Random(0)
    rows = [[*generator.sample(DETERMINERS, 2), *generator.sample(WORDS, 2)] for _ in range(count)]
    sides = [[" ".join([d[i], n[i], ("sees", "sieht")[i], e[i], m[i], "."]) for i in (0, 1)] for d, e, n, m in rows]
    return [tuple(pair) for pair in sides]
