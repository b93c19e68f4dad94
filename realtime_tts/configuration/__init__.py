"""Where settings come from: flags, the environment and a file, of one definition; and how a running
server takes new ones over."""
