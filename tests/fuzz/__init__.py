"""Damaged and nonsensical inputs: each is used or refused with a sentence, in bounded time and memory."""
