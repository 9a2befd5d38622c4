"""NumPy's `.npz`: a zip of `.npy` arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from vecfill.errors import FormatError
from vecfill.io.arrays import DAMAGE, ArrayCodec, Tensor
from vecfill.io.sources import Source
from vecfill.io.streams import MAX_RATIO


class Npz(ArrayCodec):
    """`.npz`, written without compression; it has no place for provenance."""

    def arrays(self, source: Source) -> NpzFile:
        """Return the arrays in a file."""
        return NpzFile(source)

    def store(self, out: Any, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write named arrays to `out`."""
        del metadata
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for name, (dtype, shape, blocks) in tensors.items():
                # A fixed date, so that the same content gives the same bytes.
                info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
                with archive.open(info, "w", force_zip64=True) as member:
                    about = {"descr": dtype.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(member, about)
                    for block in blocks:
                        member.write(block)


@dataclass
class NpzFile:
    """An `.npz`: a zip of `.npy` arrays."""

    source: Source

    def __post_init__(self) -> None:
        self.kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self.metadata: Mapping[str, str] = MappingProxyType({})
        try:
            self._archive = zipfile.ZipFile(self.source.file())
            for info in self._archive.infolist():
                if info.file_size > MAX_RATIO * max(info.compress_size, 1):
                    raise self.source.refuse(
                        f"{info.filename} unpacks to more than {MAX_RATIO} times its size, as a "
                        "bomb does. If you trust it, save it again without compression."
                    )
                name = info.filename.removesuffix(".npy")
                if name in self.kinds:
                    raise self.source.refuse(
                        f"holds two arrays named {name!r}, so one of them would be lost. "
                        "Save it again with numpy.savez."
                    )
                with self._archive.open(info) as member:
                    self.kinds[name] = self._kind(member, name)
        except FormatError:
            raise
        except DAMAGE as error:
            raise self.source.refuse(
                f"is a damaged .npz file ({error}). Save it again with numpy.savez."
            ) from error

    def _kind(self, member: Any, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        version = np.lib.format.read_magic(member)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(member)
        if dtype.hasobject:
            raise self.source.refuse(
                f"the array {name!r} holds pickled objects, which can run code and are never "
                "loaded. Save words as numpy.array(words, dtype=str)."
            )
        if is_fortran and len(shape) > 1 and name in ("words", "vectors"):
            raise self.source.refuse(
                f"the array {name!r} is stored column by column. "
                "Save numpy.ascontiguousarray of it."
            )
        return dtype, shape

    def open(self, name: str) -> BinaryIO:
        """Return the bytes of an array, unpacked as they are read."""
        member: Any = self._archive.open(f"{name}.npy")
        self._kind(member, name)
        return member
