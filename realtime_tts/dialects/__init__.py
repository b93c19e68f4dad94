"""Other APIs, spoken over our engine: their clients use this server by changing a URL.

There is one module for each API; its requests, answers and routes may be in others that begin with
its name. What several APIs need over HTTP is in `speech_endpoint.py` and `api.py`, over a WebSocket
in `socket.py` and `context.py`. They know the front, its speeches and its sockets, and nothing of
the inside of the engine, of the native session or of each other.
"""
