"""Access: the keys of a server's customers, what each may do, and what each has used.

It knows no sockets: `server/` asks it, and closes the sockets of a key that is no longer valid.
"""
