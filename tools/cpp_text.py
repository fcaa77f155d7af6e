"""Just enough understanding of C++ text for style rules: comments, strings, includes, functions."""

import dataclasses
import re

_TOKEN = re.compile(
    r"""(?=["'/R])(?:"""
    r'(?P<raw>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*')"
    r"|(?P<line>//[^\n]*)"
    r"|(?P<block>/\*.*?\*/))",
    re.DOTALL,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_ATTRIBUTE = re.compile(
    r"\[\[.*?\]\]|\b(?:alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)", re.DOTALL
)
_CONTAINER = re.compile(
    r"\s*(?:(?:inline|export|typedef)\s+)*(namespace|class|struct|union|enum|extern)\b"
)
_OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|[^\w\s(]+)")


@dataclasses.dataclass(frozen=True)
class Include:
    line: int
    path: str
    quoted: bool


@dataclasses.dataclass(frozen=True)
class Function:
    """A function's first line (where its signature begins) and number of lines."""

    line: int
    lines: int
    head: str


def _spaces(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def blank(text: str) -> str:
    """Replaces comments and the insides of literals by spaces; lines and columns stay."""

    def replace(match: re.Match) -> str:
        token = match.group()
        if match.lastgroup in ("line", "block"):
            return _spaces(token)
        return '"' + _spaces(token[1:-1]) + '"'

    return _TOKEN.sub(replace, text)


def includes(text: str, code: str) -> list[Include]:
    """Returns the include directives of a text, given its blanked code (comments hold none)."""
    return [
        Include(text.count("\n", 0, match.start()) + 1, match[2], match[1] == '"')
        for match in _INCLUDE.finditer(text)
        if "#" in code[match.start() : match.start(1)]
    ]


def _without_template_head(head: str) -> str:
    """Drops leading `template <…>` clauses, whose `class` words are no class."""
    while match := re.match(r"\s*template\s*<", head):
        depth, position = 1, match.end()
        while position < len(head) and depth > 0:
            depth += {"<": 1, ">": -1}.get(head[position], 0)
            position += 1
        head = head[position:]
    return head


def _kind(head: str) -> str:
    """Says what a brace opens, judged by the text since the last `;`, `{` or `}`."""
    head = _without_template_head(_ATTRIBUTE.sub(" ", head))
    head = _OPERATOR.sub("operator_", head)
    head = re.sub(r"^\s*(?:(?:public|protected|private)\s*:\s*)+", "", head)
    paren = head.find("(")
    if _CONTAINER.match(head) and paren < 0:
        return "container"
    if paren < 0 or head.count("(") != head.count(")"):
        return "other"
    assignment = head.find("=", 0, paren)
    lambda_tail = re.search(r"\)\s*(?:mutable\s*|noexcept\s*)*(?:->[^=]*)?\s*$", head)
    if assignment >= 0 and not (lambda_tail and "[" in head[assignment:]):
        return "other"
    return "function"


def functions(code: str) -> list[Function]:
    """Finds the functions in blanked code; what is nested in a function belongs to it."""
    code = _DIRECTIVE.sub(lambda match: _spaces(match.group()), code)
    found = []
    scopes: list[tuple[str, int, str]] = []
    head_start = 0
    depth = 0  # Braces open that are no containers.
    for match in re.finditer(r"[{};]", code):
        position = match.start()
        brace = match.group()
        outside = depth == 0
        if brace == "{":
            kind, start, head = "nested", 0, ""
            if outside:
                head = code[head_start:position]
                kind = _kind(head)
                start = head_start + len(head) - len(head.lstrip())
            scopes.append((kind, start, head))
            depth += kind != "container"
        elif brace == "}" and scopes:
            kind, start, head = scopes.pop()
            depth -= kind != "container"
            if kind == "function":
                first = code.count("\n", 0, start) + 1
                last = code.count("\n", 0, position) + 1
                found.append(Function(first, last - first + 1, " ".join(head.split())))
        if outside or depth == 0:
            head_start = position + 1
    return found
