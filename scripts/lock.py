"""Write requirements.lock: every package that `pip install '.[dev]'` takes, with its version and checksum.

    python scripts/lock.py               (make lock)
    python scripts/lock.py --renew       (make renew) the newest versions that fit together: constraints.txt first

pip resolves the extras without installing anything, and says which file it would take. The lock follows
constraints.txt: `pip install --require-hashes --no-deps -r requirements.lock` installs these very files or nothing. It
holds for the system it was made on (Python and platform stand in its first line). A line of constraints.txt that says
"kept" and why keeps its version when the others are renewed.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = "constraints.txt"
LOCK = "requirements.lock"
HEAD = '# What we test with. `make renew` writes the newest versions; a line that says "kept" keeps its own.\n'


def resolved(extras: str, constraints: Path) -> list[dict[str, Any]]:
    """What pip would install for these extras, this package itself left out: from its installation report."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(file)]
        subprocess.run(
            [sys.executable, "-m", "pip", *words, "--constraint", str(constraints), f".[{extras}]"],
            cwd=ROOT,
            check=True,
        )
        report = json.loads(file.read_bytes())
    return [package for package in report["install"] if package["metadata"]["name"] != "pfungst"]


def locked(packages: list[dict[str, Any]]) -> str:
    """The text of requirements.lock."""
    lines = []
    for package in packages:
        about, archive = package["metadata"], package["download_info"]["archive_info"]
        name = about["name"].lower().replace("_", "-").replace(".", "-")
        lines.append(f"{name}=={about['version']} --hash=sha256:{archive['hashes']['sha256']}")
    head = f"# python scripts/lock.py, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return "\n".join([head, *sorted(lines), ""])


def kept(constraints: str) -> dict[str, str]:
    """Package -> its line, for lines that are not renewed."""
    return {line.partition("==")[0].lower(): line for line in constraints.splitlines() if "# kept" in line}


def constrained(packages: list[dict[str, Any]], keep: dict[str, str]) -> str:
    """The text of constraints.txt."""
    lines = dict(keep)
    for package in packages:
        name, number = package["metadata"]["name"], package["metadata"]["version"]
        lines.setdefault(name.lower(), f"{name}=={number.partition('+')[0]}")
    return HEAD + "".join(f"{lines[name]}\n" for name in sorted(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true", help="write constraints.txt first")
    given = parser.parse_args()
    constraints = ROOT / CONSTRAINTS
    if given.renew:
        keep = kept(constraints.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / CONSTRAINTS
            file.write_text("".join(f"{line}\n" for line in keep.values()), "utf-8")
            constraints.write_text(constrained(resolved("dev,bench", file), keep), "utf-8")
    (ROOT / LOCK).write_text(locked(resolved("dev", constraints)), "utf-8")


if __name__ == "__main__":
    main()
