"""The parts of scripts/play_zoo.py."""
