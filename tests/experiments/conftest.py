from tests.torch_fixtures import _one_thread, _seeded  # noqa: F401
