"""Turn what a notebook holds into HTML that shows in any browser, fetches nothing and runs nothing.

A submission's text and outputs come from somebody else. Everything passes through `clean`, an
allow-list of elements and attributes; formulas become MathML, built element by element.
"""

from __future__ import annotations

import base64
import html
import re
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree

import bleach
import jinja2
from bleach.css_sanitizer import CSSSanitizer
from latex2mathml.converter import convert_to_element
from markupsafe import Markup
from nbconvert.filters.ansi import ansi2html, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAGS = _words(
    "a abbr b blockquote br caption cite code col colgroup dd del details div dl dt em "
    "figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small "
    "span strong sub summary sup table tbody td tfoot th thead tr u ul var"
)
ATTRIBUTES = _words("alt align class colspan open rowspan scope start style title")
STYLES = _words(
    "background-color border-left color font-family font-style font-weight line-height "
    "margin padding text-align text-decoration white-space"
)
LINK = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=\s]*")
PLAIN_STYLE = re.compile(r"[\w\s:;.,#%'\"-]*")  # no brackets: nothing like url(...)
WITH_CONTENT = re.compile(r"<(script|style|title|iframe|noscript)\b.*?(</\1\s*>|\Z)", re.I | re.S)

MATHML = "http://www.w3.org/1998/Math/MathML"
MATH_TAGS = _words(
    "math merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow "
    "ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover"
)
MATH_ATTRIBUTES = _words(
    "accent columnalign columnlines columnspacing depth display displaystyle fence form "
    "height largeop linebreak linethickness lspace mathcolor mathsize mathvariant maxsize "
    "minsize movablelimits rowlines rowspacing rspace scriptlevel separator stretchy "
    "symmetric voffset width"
)
# What latex2mathml does not know, in words that it does.
SYNONYMS = (
    (re.compile(r"\\(begin|end)\{(?:align|aligned|gather|gathered|eqnarray)\*?\}"), r"\\\1{split}"),
    (re.compile(r"\\(?:begin|end)\{equation\*?\}|\\(?:nonumber|notag)\b"), ""),
)


def clean(text: str) -> Markup:
    """Return HTML with nothing in it but text, tables, plain pictures and links."""
    return Markup(_cleaner().clean(WITH_CONTENT.sub("", text)))


def markdown(cell: NotebookNode) -> Markup:
    """Render a Markdown cell, its attached pictures included."""
    renderer = _Renderer(_attachments(cell))
    page = MarkdownWithMath(renderer=renderer).render(cell.source)
    safe = clean(page)
    for token, formula in renderer.formulas.items():
        safe = safe.replace(token, formula)
    return Markup(safe)


@jinja2.pass_context
def markdown_filter(context: Mapping[str, Any], source: str) -> Markup:
    """Render Markdown in a page of nbconvert's, in place of its filter ``markdown2html``."""
    attachments = context.get("cell", {}).get("attachments", {})
    return markdown(NotebookNode(source=source, attachments=attachments))


def code(source: str) -> Markup:
    """Return Python code with its words coloured by class."""
    return Markup(highlight(source, PythonLexer(), HtmlFormatter()))


def code_style() -> str:
    """Return the CSS for `code`."""
    return HtmlFormatter().get_style_defs(".highlight")


def formula(latex: str, *, block: bool) -> Markup:
    """Return a formula as MathML, or as its LaTeX where it cannot be converted."""
    try:
        text = latex
        for pattern, other in SYNONYMS:
            text = pattern.sub(other, text)
        element = _safe_math(
            convert_to_element(text.strip(), display="block" if block else "inline")
        )
    except Exception:  # latex2mathml raises of many kinds, IndexError among them
        return Markup(f"<code>{html.escape(latex)}</code>")
    element.set("xmlns", MATHML)
    return Markup(ElementTree.tostring(element, encoding="unicode"))


def output(out: NotebookNode) -> Markup:
    """Render one output of a code cell in the richest form that is safe and needs no network."""
    if out.output_type == "stream":
        return Markup(f"<pre>{ansi2html(out.text)}</pre>")
    if out.output_type == "error":
        return Markup(f'<pre class="error">{ansi2html(chr(10).join(out.traceback))}</pre>')
    data = out.get("data", {})
    if "text/html" in data:
        return clean(_text(data["text/html"]))
    for kind in ("image/png", "image/jpeg", "image/gif"):
        if kind in data:
            return _picture(kind, "".join(_text(data[kind]).split()), _text(data.get("text/plain")))
    if "image/svg+xml" in data:
        # As a picture, because a drawing in the page could hold a script.
        drawing = base64.b64encode(_text(data["image/svg+xml"]).encode()).decode()
        return _picture("image/svg+xml", drawing, _text(data.get("text/plain")))
    if "text/markdown" in data:
        return markdown(NotebookNode(source=_text(data["text/markdown"])))
    if "text/latex" in data:
        return formula(_text(data["text/latex"]).strip().strip("$"), block=True)
    return Markup(f"<pre>{ansi2html(_text(data.get('text/plain')))}</pre>")


def plain(out: NotebookNode) -> str:
    """Return an output as text alone."""
    if out.output_type == "stream":
        return strip_ansi(out.text)
    if out.output_type == "error":
        return strip_ansi("\n".join(out.traceback))
    return strip_ansi(_text(out.get("data", {}).get("text/plain")))


def _picture(kind: str, content: str, words: str) -> Markup:
    source = f"data:{kind};base64,{content}"
    if not IMAGE.fullmatch(source):
        return Markup("<p>(A picture that is none.)</p>")
    # <Figure size 640x480 with 1 Axes> tells nobody much.
    alt = "a picture" if not words or words.startswith("<") else words
    return Markup('<img src="{}" alt="{}">').format(source, alt)


def _text(value: object) -> str:
    return "".join(value) if isinstance(value, list) else str(value or "")


def _attachments(cell: NotebookNode) -> dict[str, dict[str, str]]:
    found = cell.get("attachments", {})
    return {
        name: {kind: _text(content) for kind, content in v.items()} for name, v in found.items()
    }


@cache
def _cleaner() -> bleach.Cleaner:
    return bleach.Cleaner(
        tags=TAGS,
        attributes=_allowed,
        protocols={"http", "https", "mailto", "data"},
        css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES),
        strip=True,
    )


def _allowed(tag: str, name: str, value: str) -> bool:
    if (tag, name) == ("a", "href"):
        return LINK.match(value) is not None
    if (tag, name) == ("img", "src"):
        return IMAGE.fullmatch(value) is not None
    return name in ATTRIBUTES and (name != "style" or PLAIN_STYLE.fullmatch(value) is not None)


class _Renderer(IPythonRenderer):
    """Renders Markdown and sets formulas aside, so that cleaning the rest leaves them whole."""

    def __init__(self, attachments: dict[str, dict[str, str]]) -> None:
        super().__init__(escape=False, exclude_anchor_links=True, attachments=attachments)
        self.formulas: dict[str, Markup] = {}
        self.latex: dict[str, str] = {}

    def block_math(self, body: str) -> str:
        return self._set_aside(body, block=True)

    def inline_math(self, body: str) -> str:
        return self._set_aside(body, block=False)

    def latex_environment(self, name: str, body: str) -> str:
        return self._set_aside(f"\\begin{{{name}}}{body}\\end{{{name}}}", block=True)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        for token, latex in self.latex.items():  # no elements in an attribute
            text = text.replace(token, latex)
        name = url.removeprefix("attachment:")
        if name != url and name not in self.attachments:
            return html.escape(text)
        return super().image(text, url, title)

    def _set_aside(self, latex: str, *, block: bool) -> str:
        # The token cannot be guessed, so no text can pretend to be one.
        token = f"formula{secrets.token_hex(12)}"
        self.formulas[token] = formula(latex, block=block)
        self.latex[token] = latex
        return token


def _safe_math(element: ElementTree.Element) -> ElementTree.Element:
    """Rebuild a formula from what MathML needs, and escape its text."""
    tag = element.tag
    attributes = {k: v for k, v in element.attrib.items() if k in MATH_ATTRIBUTES}
    if tag == "menclose":  # a box, which not every browser draws; the page's style does
        tag, attributes = "mrow", {"class": "box"}
    if tag not in MATH_TAGS:
        raise ValueError(f"{tag} is not MathML")
    made = ElementTree.Element(tag, attributes)
    made.text = html.unescape(element.text or "")
    children = list(element)
    following = [*(child.tag for child in children[1:]), ""]
    for child, after in zip(children, following, strict=False):
        made.append(_safe_math(child))
        if _is_function(child) and after in ("mi", "mn", "mrow", "mfrac", "msub"):
            made.append(ElementTree.Element("mspace", width="0.17em"))  # ln x, not lnx
    return made


def _is_function(element: ElementTree.Element) -> bool:
    text = html.unescape(element.text or "")
    return element.tag == "mi" and len(text) > 1 and text.isalpha()
