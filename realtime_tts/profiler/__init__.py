"""One frame's stages compared with what the machine could do: bytes over bandwidth, FLOPs over
rate.

`roofline` is arithmetic on dimensions, `machine` measures copies and matrix products, `stages`
times the engine, `report` combines them.
"""
