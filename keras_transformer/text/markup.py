"""Translates HTML and XML: the text changes, everything else stays as it was written.

A source is cut into tags, comments and texts. What is not translated is in the output character by character: tags with
their attributes, entities, scripts, comments, templates, line ends. Every element is in the output once, inside the
same parent. Inline elements, such as `b` and `a`, go to the words that the model aligns with theirs. A tag without its
counterpart stays where it is, and ends the text.

HTML defines which elements are inline. In XML, an element is inline if it stands next to words. Elements of XHTML, SVG
and MathML in XML follow the rules of HTML.
"""

import re
from collections.abc import Callable

from keras_transformer.text.markup_alignment import Aligned, Target, placed, sources_of
from keras_transformer.text.markup_tree import HtmlTree, written_out, xml_tree

# From strings to their translations, in order.
Translate = Callable[[list[str]], list[Aligned]]


def translate_html(
    html: str, translate: Translate, source_language: str | None = None, target_language: str | None = None
) -> str:
    """Translates an HTML document or fragment.

    Text of `KEPT` elements and of those with `translate="no"`, `class="notranslate"` or a `lang` that is neither that
    of the sources nor that of the `html` element is not translated. The others get the `lang` of the translation, if
    they have one; a declared encoding becomes UTF-8.

    Args:
        html: a string.
        translate: a function from a list of strings to a list of `Aligned`, such as `aligned_translations` of a
            translator.
        source_language: code of the language of the sources, such as `"en"`. Defaults to None: that of `html`.
        target_language: code of the language of the translations. Defaults to None: each `lang` stays.
    """
    # Half surrogate pairs, which Python may have, are no text.
    html = html.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _translated(HtmlTree(html, source_language).root(), translate, target_language)


def translate_xml(
    xml: str, translate: Translate, source_language: str | None = None, target_language: str | None = None
) -> str:
    """Translates an XML document.

    An element is inline if it stands beside words and its own elements do so, too; others begin a new text. Elements
    with an attribute of `KEPT_IN_XML` or of another language do not change, nor do comments, processing instructions,
    entities and the document type. `xml:lang` and the declared encoding change as in HTML. What is in a CDATA section
    is translated as HTML if it has tags.

    Args:
        xml: a string.
        translate, source_language, target_language: see `translate_html`.

    Raises:
        ValueError: the document is not well-formed.
    """
    return _translated(xml_tree(xml, source_language), translate, target_language)


def _translated(root, translate, target_language):
    sources = list(sources_of(root, re.sub("[^A-Za-z0-9]+", "-", target_language or "")))
    translations = translate([source.text for source in sources])
    for source, translation in zip(sources, translations, strict=True):
        target = Target(source, translation)
        source.run.contents = placed(source.tree, target, 0, len(target.text))
    return written_out(root)
