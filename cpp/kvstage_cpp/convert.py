"""Kernel launches as ordinary C++: `k<<<grid, block>>>(x)` becomes `kvstage_launch(grid, block)(k, x)`, line by line."""

import re
from collections.abc import Iterator

from .errors import CppError

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<string>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<open><<<)|(?P<close>>>>)|(?P<number>[0-9](?:'?[0-9a-zA-Z_.])*)|(?P<name>[A-Za-z_]\w*|::)|(?P<space>\s+)|(?P<other>.)""",
    re.DOTALL,
)
INCLUDED = "#include <cuda_runtime.h>\n"
"""What a compiler of CUDA includes by itself."""
OPENING, CLOSING = "([{", ")]}"


def converted(text: str, name: str) -> str:
    """The C++ of a CUDA file's text, whose first lines include the runtime and keep the numbers of its lines.

    Raises CppError, with the line, for a launch that isn't one.
    """
    tokens = [(match.lastgroup if match.lastgroup != "mark" else "string", match.group()) for match in TOKEN.finditer(text)]
    parts: list[str] = []
    kinds: list[str] = []
    at = 0
    while at < len(tokens):
        kind, token = tokens[at]
        if kind != "open":
            parts.append(token)
            kinds.append(kind or "other")
            at += 1
            continue
        line = text.count("\n", 0, sum(len(each) for _, each in tokens[:at])) + 1
        begin = _kernel(parts, kinds)
        if begin == len(parts):
            raise CppError(f"{name}:{line}: there is no kernel before <<<")
        kernel = "".join(parts[begin:])
        del parts[begin:], kinds[begin:]
        end = next((number for number in range(at + 1, len(tokens)) if tokens[number][0] == "close"), None)
        if end is None:
            raise CppError(f"{name}:{line}: <<< has no >>>")
        call = _following(tokens, end + 1)
        if call is None:
            raise CppError(f"{name}:{line}: there are no arguments after >>>: write kernel<<<...>>>(...)")
        configuration = "".join(token for _, token in tokens[at + 1 : end])
        between = "".join(token for _, token in tokens[end + 1 : call])
        nothing = _following(tokens, call + 1, ")") is not None
        parts.append(f"kvstage_launch({configuration}){between}({kernel.strip()}{'' if nothing else ', '}")
        kinds.append("other")
        at = call + 1
    return f'{INCLUDED}#line 1 "{name}"\n' + "".join(parts)


def _following(tokens: list[tuple[str | None, str]], at: int, wanted: str = "(") -> int | None:
    """Where the next token is that is neither space nor comment, if it is the one that is wanted."""
    for number in range(at, len(tokens)):
        if tokens[number][0] not in ("space", "comment"):
            return number if tokens[number][1] == wanted else None
    return None


def _kernel(parts: list[str], kinds: list[str]) -> int:
    """Where the kernel begins that the parts end with: a name with its scopes and template arguments."""
    at = len(parts)
    while at and kinds[at - 1] == "space":
        at -= 1
    if at and parts[at - 1] == ">":
        at = _template(parts, at)
    begin = at
    while begin and (kinds[begin - 1] == "name"):
        begin -= 1
        if begin and parts[begin] != "::" and parts[begin - 1] != "::":
            break
    return begin if begin < at else len(parts)


def _template(parts: list[str], at: int) -> int:
    """Where the template arguments begin that end before `at`."""
    depth = 0
    for number in _backwards(at):
        token = parts[number]
        if token in CLOSING or token == ">":
            depth += 1
        elif token in OPENING or token == "<":
            depth -= 1
            if depth == 0:
                return number
    return at


def _backwards(at: int) -> Iterator[int]:
    return iter(range(at - 1, -1, -1))
