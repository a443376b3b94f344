# %% [markdown] name="challenge"
# # Doubling
#
# What is twice a number?

# %% name="imports"
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from ipywidgets import IntSlider

from hopping import check

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": ""}
### BEGIN SOLUTION
prediction = {"q1": "b"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
assert prediction["q1"], "Choose an answer first."

# %% [markdown]
# Write $2 x$.


# %% nbgrader={"grade_id": "double", "solution": true}
def double(x: np.ndarray) -> np.ndarray:
    """Return twice a number: 2.0 for 1.0."""
    ### BEGIN SOLUTION
    doubled = np.add(x, np.asarray(x))
    return doubled
    ### END SOLUTION
    raise NotImplementedError  # replace this line


# %%
check(double)

# %% name="see" tags=["picture"]
fig, ax = plt.subplots(figsize=(2, 2))
ax.plot([0, 1], double(np.array([0.0, 1.0])))
plt.show()
display(IntSlider(description="x"))
print("one", flush=True)
print("two")
double(np.array([1.0, 2.0]))

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 6}
# Triple something and say what you see.
#
# ### BEGIN MARK SCHEME
# Two points for each figure.
# ### END MARK SCHEME

# %% [markdown] nbgrader={"grade_id": "report", "grade": true, "solution": true, "points": 4}
# What did you see?
#
# ### BEGIN SOLUTION
# The slope is twice as steep.
# ### END SOLUTION
