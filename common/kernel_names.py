"""Which numeric kernels this process computes with: what decides the last bits of a product."""

import numpy as np
from threadpoolctl import threadpool_info


def kernel_names() -> str:
    """OpenBLAS's choice for this CPU, and the CPU features NumPy has chosen its own loops by."""
    blas = {str(found.get("architecture", found["internal_api"])) for found in threadpool_info()}
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    return f"blas {' '.join(sorted(blas))}; numpy {' '.join(sorted(name for name, there in features.items() if there))}"
