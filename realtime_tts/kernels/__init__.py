"""Device kernels: Triton where it runs, and for each a plain PyTorch twin of the same signature."""
