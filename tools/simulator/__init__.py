"""Virtual machines and sessions around the real scheduler: see scheduler/README.md."""
