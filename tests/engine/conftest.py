"""Makes `faulty` and `cloning` importable: here, and in engine processes, which get our path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
