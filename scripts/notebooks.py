"""Make the notebooks of tutorials from their pages: python scripts/notebooks.py

Files become `%%writefile` cells, commands become `%%bash` cells, Python stays Python; outputs are left out, so that the
page is the only place where they stand.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
NAMES = ("1-first-exam", "2-own-model")

_HEAD = "---\njupyter:\n  kernelspec:\n    display_name: Python 3\n    language: python\n    name: python3\n---\n\n"
_OUTPUT = re.compile(r"(```python\n.*?^```)\n\n```text\n.*?^```", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r'^```python title="([^"]+)"\n', re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"^<!-- \w+: \S+ -->\n", re.MULTILINE)


def notebook(page: str) -> str:
    """The page as a notebook, in JSON."""
    page = _NOTE.sub("", _OUTPUT.sub(r"\1", page))
    page = _FILE.sub(r"```python\n%%writefile \1\n", page)
    page = _CONSOLE.sub(lambda match: f"```bash\n{_commands(match[1])}```", page)
    page = page.replace("```bash\npip install 'pfungst[torch]'\n```", "```python\n# %pip install 'pfungst[torch]'\n```")
    made = jupytext.reads(_HEAD + page, fmt="md")
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(made.cells):
        cell["id"], cell["metadata"] = f"cell-{number}", {}
    return str(jupytext.writes(made, fmt="ipynb"))


def _commands(block: str) -> str:
    """The commands of a console block, without their outputs."""
    found, going_on = [], False
    for line in block.splitlines():
        if going_on or line.startswith("$ "):
            found.append(line.removeprefix("$ "))
            going_on = line.endswith("\\")
    return "\n".join(found) + "\n"


if __name__ == "__main__":
    for name in NAMES:
        page = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
        (TUTORIALS / f"{name}.ipynb").write_text(notebook(page) + "\n", encoding="utf-8")
