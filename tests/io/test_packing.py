"""Objects taken apart into JSON and arrays."""

import numpy as np

from vecfill.io.packing import Packer, Unpacker


def test_an_array_that_two_objects_share_is_packed_once():
    shared, other = np.arange(3), np.arange(3)
    packer = Packer({})
    packed = packer.pack({"one": shared, "two": {"same": shared, "other": other}}, "it")
    assert list(packer.arrays) == ["it.one", "it.two.other"]
    unpacked = Unpacker({}, packer.arrays.__getitem__).unpack(packed)
    assert unpacked["two"]["same"] is unpacked["one"]
    assert unpacked["two"]["other"].tolist() == [0, 1, 2]
