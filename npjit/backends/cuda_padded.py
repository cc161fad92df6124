"""Products of 16 bits in padded rows: the tensor cores' fast kernels want rows and extents of whole
16 bytes, without which a product takes three to five times as long.

In: the regions of c = a @ b. Out: regions in scratch memory, with zeros where there is no element,
and the kernels that copy there and back (`cuda_copy.h`). What is as it should be stays; a result
that is read row by row has such rows already (schedule/storage.py):

    a of (16, 1433, 1433) bfloat16   ->   (16, 1433, 1440)
"""

from __future__ import annotations

from npjit.backends.cuda_device import Region
from npjit.codegen.cuda_launch import Start, up

# numbers of 16 bits in 16 bytes; the extents from which copying is the lesser cost
_WHOLE = 8
_LARGE = 512
# rows of a block that copies, each by a warp
_ROWS = 16


def in_padded_rows(
    a: Region, b: Region, c: Region
) -> tuple[Region | None, Region | None, Region | None] | None:
    """The operands as the fast kernels want them, at address 0, None where one is so already; None:
    all are so, or too small. c may have more columns than b, as its rows have room for."""
    (m, k), n = a.shape[-2:], c.shape[-1]
    if a.dtype.itemsize != 2 or a.dtype != b.dtype or min(m, n, k) < _LARGE or len(c.shape) > 3:
        return None
    if all(map(_is_whole, (a, b, c))) or not all(map(_has_rows, (a, b, c))):
        return None
    k, n = (up(x, _WHOLE) * _WHOLE for x in (k, n))
    like_a, like_b, like_c = _like(a, m, k), _like(b, k, n), _like(c, m, n)
    return _unless_so(a, like_a), _unless_so(b, like_b), _unless_so(c, like_c)


def _unless_so(r: Region, wanted: Region) -> Region | None:
    return None if _is_whole(r) and r.shape == wanted.shape else wanted


def copied(source: Region, target: Region) -> tuple[Start, tuple[int, ...]]:
    """What copies one to the other, as far as there are elements, and its parameters behind the two
    addresses."""
    words = [w for r in (source, target) for w in (_step(r), *_rows(r))]
    batch = target.shape[0] if _step(target) else 1
    rows = _rows(target)[1]
    function = f"nj_copy_rows<u{8 * target.dtype.itemsize}>"
    return Start(function, (up(rows, _ROWS), batch), 128), tuple(words)


def bytes_of(region: Region) -> int:
    """The memory of a padded operand."""
    row, rows, _ = _rows(region)
    batch = region.shape[0] if _step(region) else 1
    return int(batch * rows * row * region.dtype.itemsize)


def _has_rows(r: Region) -> bool:
    return 1 in r.strides[-2:]


def _rows(r: Region) -> tuple[int, int, int]:
    """The step from row to row in memory, how many there are, and their length."""
    (rows, columns), (row, column) = r.shape[-2:], r.strides[-2:]
    return (row, rows, columns) if column == 1 else (column, columns, rows)


def _step(r: Region) -> int:
    return r.strides[0] if len(r.shape) == 3 else 0


def _is_whole(r: Region) -> bool:
    row, _, length = _rows(r)
    size = r.dtype.itemsize
    return (
        length % _WHOLE == 0
        and not any(x * size % 16 for x in (row, _step(r)))
        and not (r.address % 16)
    )


def _like(r: Region, rows: int, columns: int) -> Region:
    """A dense region of that many rows and columns, which lie as they do in the other one."""
    turned = r.strides[-1] != 1
    length = up(rows if turned else columns, _WHOLE) * _WHOLE
    strides = (1, length) if turned else (length, 1)
    size = length * (columns if turned else rows)
    batch = r.shape[:-2]
    steps = tuple(size if step else 0 for step in r.strides[:-2])
    return Region(0, r.dtype, (*batch, rows, columns), (*steps, *strides))
