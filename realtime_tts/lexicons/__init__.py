"""Stored lexicons: a folder of versions, and in memory those that turns speak with.

`folder.py` and `file.py` read and write them, `pls.py` reads and writes the W3C's format, and
`library.py` has what the server uses. `text/lexicon.py` finds the words in a text.
"""
