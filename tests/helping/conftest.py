"""Commands as a user types them."""

from tests.cli.conftest import folder, pfungst

__all__ = ["folder", "pfungst"]
