"""Lexicons that are kept: a folder of versions, and those that turns speak with, in memory.

`folder.py` and `file.py` read and write them, `pls.py` reads and writes the W3C's format, and
`library.py` has what the server uses. What finds the words in a text is `text/lexicon.py`.
"""
