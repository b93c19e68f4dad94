"""Registered voices: a folder of small files, and the worker that makes them from recordings.

Nothing here touches torch: `registry.py` and `file.py` read and write the folder, `worker.py` runs
in a process of its own and encodes with a `VoiceMaker`.
"""
