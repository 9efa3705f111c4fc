"""Faults of machines, disks and players: nothing is lost, nothing asked twice, nothing damaged used in silence."""
