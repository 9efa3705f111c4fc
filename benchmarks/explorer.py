"""How long a page of the explorer takes over a million answers, while an exam writes beside them.

    python benchmarks/explorer.py [--quick]

The server is `pfungst serve` in a process of its own. Another process runs exams into the same folder of runs, one
after the other without a pause. The peer answers the same requests from the same files without an index: it reads the
columns it needs with pyarrow and filters them, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pfungst.core.files import PARQUET_WRITING
from pfungst.core.trials import ROW_GROUP, trials_schema

WORDS = ["what", "is", "the", "colour", "of", "big", "small", "red", "cube", "left", "behind", "sphere", "how", "many"]
PROBES = ("noise", "rephrase", "decoys", "blind")
VARIANTS = ["clean", *(f"partition {number}" for number in range(1, 8))]
WRITER = """
import sys, shutil, itertools
import pfungst
for number in itertools.count():
    out = sys.argv[1] + "/live"
    shutil.rmtree(out, ignore_errors=True)
    pfungst.examine("prior", "world", ["control", "blind", "rephrase"], out, seed=number)
"""


def make_run(folder: Path, answers: int) -> None:
    """A run folder of so many answers, over four probes: one appends to the question, one rewords it, two leave it."""
    rng = np.random.default_rng(0)
    texts = np.array([" ".join(rng.choice(WORDS, 12)) + f" {number}?" for number in range(20_000)])
    (folder / "trials").mkdir(parents=True)
    each = answers // 4 // len(VARIANTS) * len(VARIANTS)
    for probe in PROBES:
        number = np.arange(each)
        example, variant = number // len(VARIANTS), number % len(VARIANTS)
        question = texts[example % len(texts)].astype(object)
        more = texts[(example * 7 + variant) % len(texts)]
        if probe == "noise":
            question = np.where(variant > 0, question + " " + more, question)
        elif probe == "rephrase":
            question = np.where(variant > 0, more, question)
        said = rng.choice(["yes", "no", "red", "2", "3", "rubber"], each)
        score = rng.integers(0, 2, each).astype(float)
        clean = score[example * len(VARIANTS)]
        flip = np.array(["still wrong", "wrong to right", "right to wrong", "still right"])[
            (2 * clean + score).astype(int)
        ].astype(object)
        flip[variant == 0] = None
        made = {
            "trial": example, "place": variant, "role": np.where(variant > 0, "keeps", "clean"),
            "cluster": [f"i{one // 3}" for one in example], "clean_score": clean, "flip": flip,
            "example_id": [f"q{one:06d}" for one in example], "image_id": [f"i{one // 3}" for one in example],
            "variant": np.array(VARIANTS)[variant], "question": question, "answer": said, "reply": said,
            "target": rng.choice(["yes", "no", "red"], each), "score": score,
            "confidence": rng.random(each), "answer_type": rng.choice(["yes/no", "number", "other"], each),
            "question_type": rng.choice(["count", "exist", "query"], each), "unread": np.zeros(each, bool),
            "key": [f"{one:064x}" for one in range(each)],
        }  # fmt: skip
        schema = trials_schema()
        columns = [
            pa.array(made[one.name], one.type) if one.name in made else pa.nulls(each, one.type) for one in schema
        ]
        path = folder / "trials" / f"{probe}.parquet"
        pq.write_table(pa.table(columns, schema), path, row_group_size=ROW_GROUP, **PARQUET_WRITING)
    data = {"name": "made", "metric": "exact", "examples": each, "fingerprint": "made", "spec": None}
    config = {"player": {"name": "big", "fingerprint": "x"}, "seed": 0, "data": data}
    config["probes"] = [{"name": name, "settings": {}} for name in PROBES]
    (folder / "exam.json").write_text(json.dumps(config))


REQUESTS: dict[str, tuple[str, dict[str, str]]] = {
    "runs": ("/", {}),
    "first page": ("/answers", {"run": "big"}),
    "filter": ("/answers", {"run": "big", "probe": "noise", "variant": "partition 3", "flip": "right to wrong"}),
    "search": ("/answers", {"run": "big", "text": "sphere 4"}),
    "search, common word": ("/answers", {"run": "big", "text": "red"}),
    "search, wrong, sorted": ("/answers", {"run": "big", "text": "cube 17", "outcome": "wrong", "sort": "sure"}),
    "sorted": ("/answers", {"run": "big", "outcome": "wrong", "sort": "unsure"}),
    "page 2,000": ("/answers", {"run": "big", "page": "2000"}),
    "one example": ("/example", {"run": "big", "id": "q000500", "at": "4000"}),
}


def peer(folder: Path, query: dict[str, str]) -> int:
    """The same request without an index: the rows of the page, and how many there are."""
    tables = []
    for file in sorted((folder / "trials").iterdir()):
        if "probe" in query and query["probe"] != file.stem:
            continue
        columns = ["example_id", "variant", "question", "answer", "score", "target", "confidence"]
        table = pq.read_table(file, columns=columns)
        if "text" in query:
            table = table.filter(pc.match_substring(pc.utf8_lower(table["question"]), query["text"]))
        for name, column in (("variant", "variant"), ("id", "example_id")):
            if name in query:
                table = table.filter(pc.equal(table[column], query[name]))
        if query.get("outcome") == "wrong":
            table = table.filter(pc.equal(table["score"], 0.0))
        tables.append(table)
    whole = pa.concat_tables(tables)
    if "sort" in query:
        whole = whole.take(pc.sort_indices(whole, [("confidence", "descending")])[:40])
    start = 40 * (int(query.get("page", "1")) - 1)
    whole.slice(start, 40).to_pylist()
    return whole.num_rows


def measure(answers: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        runs = Path(name) / "runs"
        make_run(runs / "big", answers)
        server = subprocess.Popen(
            [sys.executable, "-m", "pfungst", "serve", str(runs), "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(runs)])
        try:
            assert server.stdout is not None
            told = ""
            while "}" not in told:
                told += server.stdout.readline()
            address = json.loads(told)["address"].rstrip("/")
            with httpx.Client(timeout=120) as visitor:
                start = time.perf_counter()
                visitor.get(address + "/answers", params={"run": "big"}).raise_for_status()
                print(f"{answers:,} answers; reading them at the first request: {time.perf_counter() - start:.1f} s")
                while not (runs / "live" / "exam.json").exists():
                    time.sleep(0.1)
                times: dict[str, list[float]] = {name: [] for name in REQUESTS}
                before = processor_seconds(server.pid)
                for _ in range(rounds):
                    for name, (path, query) in REQUESTS.items():
                        time.sleep(0.03)
                        start = time.perf_counter()
                        visitor.get(address + path, params=query).raise_for_status()
                        times[name].append(time.perf_counter() - start)
                assert writer.poll() is None, "the exam ended"
                spent = processor_seconds(server.pid) - before
                report(times, runs / "big")
                if spent > 0:
                    each = 1000 * spent / (rounds * len(REQUESTS))
                    load = os.getloadavg()[0]
                    print(f"processor time of the server: {each:.0f} ms a request; load of the machine: {load:.1f}")
        finally:
            for process in (writer, server):
                process.terminate()
                process.wait(20)


def processor_seconds(process: int) -> float:
    """What a process has used so far, all its threads together; 0 where the system does not say."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def report(times: dict[str, list[float]], folder: Path) -> None:
    print(f"{'request':24}{'p50':>9}{'p95':>9}{'peer':>9}{'ratio':>8}")
    for name, found in times.items():
        middle, high = np.percentile(found, [50, 95]) * 1000
        ratio = ""
        if name != "runs":
            start = time.perf_counter()
            peer(folder, REQUESTS[name][1])
            theirs = (time.perf_counter() - start) * 1000
            ratio = f"{theirs:6.0f} ms{theirs / middle:8.1f}"
        print(f"{name:24}{middle:6.0f} ms{high:6.0f} ms{ratio}")
    everything: Any = np.concatenate([np.asarray(one) for one in times.values()])
    print(f"all requests: p95 {np.percentile(everything, 95) * 1000:.0f} ms (wanted: below 200 ms)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    measure(100_000 if quick else 1_000_000, 3 if quick else 25)


if __name__ == "__main__":
    main()
