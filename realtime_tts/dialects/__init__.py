"""Other APIs, spoken over our engine: their clients reach us by changing a URL.

One module for each API, with its requests, answers and routes in others that begin with its name.
What several of them need over HTTP is in `speech_endpoint.py` and `http.py`, over a WebSocket in
`socket.py` and `context.py`. They know the front, its speeches and its sockets, and nothing of the
engine's inside, of the native session and of each other.
"""
