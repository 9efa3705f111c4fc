"""The element-wise part of a splitting iteration as one triton kernel. Imported only where triton is installed."""

import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def update(  # type: ignore[no-untyped-def,unused-ignore]
    t_ptr,
    v_ptr,
    constant_ptr,
    y_ptr,
    mean_ptr,
    count,
    unscale,
    alpha,
    weight,
    low,
    HAS_CONSTANT: tl.constexpr,
    HAS_MEAN: tl.constexpr,
    SIZE: tl.constexpr,
):
    """t += alpha (v + constant - clip(t)); y = t - 2 clip(t); mean += weight (t - clip(t) - mean)."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < count
    t = tl.load(t_ptr + at, mask=inside, other=0.0)
    v = tl.load(v_ptr + at, mask=inside, other=0.0).to(tl.float32) * unscale
    if HAS_CONSTANT:
        v += tl.load(constant_ptr + at, mask=inside, other=0.0).to(tl.float32)
    t += alpha * (v - tl.minimum(tl.maximum(t, low), 1.0))
    z = tl.minimum(tl.maximum(t, low), 1.0)
    tl.store(t_ptr + at, t, mask=inside)
    tl.store(y_ptr + at, (t - 2.0 * z).to(tl.float16), mask=inside)
    if HAS_MEAN:
        mean = tl.load(mean_ptr + at, mask=inside, other=0.0)
        tl.store(mean_ptr + at, mean + weight * (t - z - mean), mask=inside)
