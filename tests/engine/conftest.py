"""Makes `faulty` importable: here, and in engine processes, which get our sys.path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
