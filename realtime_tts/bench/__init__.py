"""A load generator over real WebSockets, and what it measures.

It sees what a listener sees: when packets arrive. What the machine computes for them is not visible
from here; every figure in a result says on which side it was measured.
"""
