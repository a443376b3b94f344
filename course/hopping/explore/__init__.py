"""Pictures that move with the learner's own functions.

The modules are named by what they show:

========  =========================================  ========
pictures  scores and weights; any energy from above  lesson 1
mixtures  bumps, their sum, and its valleys          lesson 2
descent   a hop and its majoriser                    lesson 3
drops     hops along the normal                      lesson 4
corners   valleys of the tanh kernel                 lesson 5
quadrics  shapes of the linear kernel                lesson 6
settling  one hop and where hops settle              lesson 7
========  =========================================  ========

`landscape` and `scores_and_weights` are ready-made. Any other picture is a pure function from a
state to a `Scene`, given to `Picture` with its controls and movable points:

>>> def scene(state):
...     beta = state["beta"]
...     marks = [Field(energy, (Y, beta)), Points(state["query"], "query", handle="query")]
...     panel = Panel("Energy", Axis("ξ₁", -2, 2), Axis("ξ₂", -2, 2), marks, equal=True)
...     return Scene([panel], f"The energy at β = {beta:.3g}.")
>>> Picture(scene, points={"query": xi}, controls={"beta": log_slider("β", 0.25, 16, 1)})
... # doctest: +SKIP
"""

from hopping.explore.corners import parallelogram, zonogon
from hopping.explore.descent import hop_and_majoriser
from hopping.explore.drops import hop_along_normal, large_drops, other_bowls
from hopping.explore.mixtures import two_centres, valleys
from hopping.explore.pictures import landscape, place, scores_and_weights
from hopping.explore.quadrics import shape_and_orbit
from hopping.explore.scene import (
    Axis,
    Band,
    Bars,
    Curve,
    Field,
    Note,
    Panel,
    Path,
    Points,
    Scene,
    TroubleError,
    ask,
)
from hopping.explore.settling import step_and_settling, three_kernels
from hopping.explore.view import Picture, count_slider, log_slider, slider

__all__ = [
    "Axis",
    "Band",
    "Bars",
    "Curve",
    "Field",
    "Note",
    "Panel",
    "Path",
    "Picture",
    "Points",
    "Scene",
    "TroubleError",
    "ask",
    "count_slider",
    "hop_along_normal",
    "hop_and_majoriser",
    "landscape",
    "large_drops",
    "log_slider",
    "other_bowls",
    "parallelogram",
    "place",
    "scores_and_weights",
    "shape_and_orbit",
    "slider",
    "step_and_settling",
    "three_kernels",
    "two_centres",
    "valleys",
    "zonogon",
]
