"""The paper, one module per stage, in the order in which data flows through them.

- `graph`: domain vectors -> which rows may explain which
- `weights`: the graph -> each row as a convex mix of its neighbours
- `trend`: what a linear map already explains, for those who want it taken out first
- `rotation`: from one embedding to another: a rotation, and the affine map that departs from it
- `propagation`: weights and known rows -> the vectors of the unknown rows

The stages do not know each other. Below them are `search` (who is near whom), `solve` (linear
systems and small least squares problems), `engine`, the only parallel map, and `scaling`, which
keeps numbers of extreme size from overflowing.
"""
