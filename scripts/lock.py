"""Write requirements.lock: every package that `pip install '.[dev]'` takes, with its version and checksum.

    python scripts/lock.py

pip resolves the extras under constraints.txt without installing anything, and says which file it would take. With the
lock, `pip install --require-hashes --no-deps -r requirements.lock` installs these very files or nothing. It holds for
the system it was made on (Python and platform stand in its first line).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def locked(report: dict[str, object]) -> str:
    """The lock, from pip's installation report."""
    lines = []
    for package in report["install"]:  # type: ignore[attr-defined]
        about, archive = package["metadata"], package["download_info"].get("archive_info")
        if archive is None:
            continue  # this package itself
        name = about["name"].lower().replace("_", "-").replace(".", "-")
        lines.append(f"{name}=={about['version']} --hash=sha256:{archive['hashes']['sha256']}")
    head = f"# python scripts/lock.py, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return "\n".join([head, *sorted(lines), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, help="a report that pip has written already")
    given = parser.parse_args()
    if given.report is None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.json"
            words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(file)]
            subprocess.run(
                [sys.executable, "-m", "pip", *words, "--constraint", "constraints.txt", ".[dev]"], cwd=ROOT, check=True
            )
            text = locked(json.loads(file.read_bytes()))
    else:
        text = locked(json.loads(given.report.read_bytes()))
    (ROOT / "requirements.lock").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
