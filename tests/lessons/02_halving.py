# %% [markdown] name="challenge"
"""
# Halving

What is half a number?
"""

# %% name="imports"
from hopping import check


# %% nbgrader={"grade_id": "halve", "solution": true}
def halve(x: float) -> float:
    """Return half of a number: 0.5 for 1.0."""
    ### BEGIN SOLUTION
    return x * 0.5  # exact in binary
    ### END SOLUTION
    raise NotImplementedError  # replace this line


# %%
check(halve)

# %% [markdown] name="end"
# That was all.
