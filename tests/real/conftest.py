"""Real data for the tests of this folder; they skip, with a reason, where it is absent."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(os.environ.get("PFUNGST_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data here: set PFUNGST_SHARED_DATA to a folder that holds it")
    return folder
