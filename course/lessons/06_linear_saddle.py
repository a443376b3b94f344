# %% [markdown] name="challenge"
# # 6 · Without softmax: bowl, trough, saddle, dome
#
# Take the softmax out of an attention head, and let a token's score itself be its weight. This is
# **linear attention**. It is fast, because it needs no exponentials and may multiply its matrices in
# any order. Its hop still goes downhill on an energy: you will prove that every single one does.
# **So where do repeated hops end?**
#
# When you are done you can
#
# - write the energy of linear attention and compute its curvatures,
# - name its landscape, and say at which β it changes,
# - explain how every hop can lower an energy and the query run away all the same,
# - set the three kernels of this course side by side, and check such a table by machine.
#
# **Time** about two hours. **You need** the hop and its promise (lesson 3), the three parts of a drop
# (lesson 4), the tanh kernel (lesson 5), and eigenvalues of a symmetric matrix. What you wrote in
# those lessons comes from SciPy, or is stated here.

# %% name="imports"
import numpy as np
from scipy.optimize import approx_fprime
from scipy.special import logsumexp, softmax

from hopping import check, check_answers, commit, draw, explore, pick, reveal
from hopping.kernels import kernel_table

# %% [markdown] name="warm_up"
# ## Warm up
#
# From lessons 3, 4 and 5. Write a letter for each, then run the cells. *(4 minutes)*
#
# **w1.** One token, softmax kernel, and the query is 5 away from the token. The drop of its hop (from
# the apex, lesson 4) is\
# (a) 5 · (b) 6 · (c) 12.5 · (d) 13.5.
#
# **w2.** For small $u$, $\ln\cosh u$ is about\
# (a) u · (b) u²/2 · (c) |u| − ln 2 · (d) 0.
#
# **w3.** Tanh kernel, three tokens. λ is the largest eigenvalue of $Y^\top Y$, and β = 0.99/λ. The
# number of valleys is\
# (a) 1 · (b) 2 · (c) 3 · (d) 8.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "d", "w2": "b", "w3": "a"}
### END SOLUTION

# %% name="warm_up_measured"
A_xi = np.array([0.75, -0.5])
A_Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]])


def drop_of_a_hop(query, token):
    """Walk to 1 above the energy at the query, fall to the landing: one token lands on itself."""
    start, end = (x @ x / 2 - x @ token for x in (query, token))
    return start + 1 - end


def nearest_to_ln_cosh(u):
    """Return which of four formulas is nearest to ln cosh at u."""
    exact = np.logaddexp(u, -u) - np.log(2)
    formulas = {"u": u, "u²/2": u**2 / 2, "|u| − ln 2": abs(u) - np.log(2), "0": 0.0}
    return min(formulas, key=lambda name: abs(formulas[name] - exact))


# %% name="warm_up_walks"
def ends_of_tanh_walks(beta, hops=3000):
    """Count where 30 queries of the tanh kernel are after many hops."""
    at = np.random.default_rng(0).normal(size=(30, 2))
    for _ in range(hops):
        at = np.tanh(beta * at @ A_Y.T) @ A_Y
    return len(np.unique(np.round(at, 3) + 0.0, axis=0))


# %% name="warm_up_check"
check_answers(
    answers,
    {
        "w1": lambda: pick(drop_of_a_hop(np.array([4.0, 4.5]), np.array([1.0, 0.5])),
                           a=5, b=6, c=12.5, d=13.5),
        "w2": lambda: pick(nearest_to_ln_cosh(0.1), a="u", b="u²/2", c="|u| − ln 2", d="0"),
        "w3": lambda: pick(ends_of_tanh_walks(0.99 / np.linalg.norm(A_Y, 2) ** 2),
                           a=1, b=2, c=3, d=8),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# A **kernel** says what weight a token gets for its score $s_\tau = y_\tau \cdot \xi$. In lessons 1 to
# 4 it was softmax, in lesson 5 tanh. Here it is the **linear kernel**: the weight is $\beta s_\tau$,
# positive or negative. A hop leads to the landing $\beta \sum_\tau s_\tau\, y_\tau$, and
#
# $$E(\xi) = \tfrac12 \|\xi\|^2 - \tfrac\beta2 \sum_\tau s_\tau^2.$$
#
# Cut this landscape along straight lines through 0. Each cut is a parabola. If all of them open
# upwards, the landscape is a **bowl**; if all open downwards, a **dome**; if some open upwards and some
# downwards, a **saddle**. Where the bowl ends, its lowest cut is just flat: a **trough**. Commit to an
# answer for each question. A guess counts. *(5 minutes)*
#
# **q1.** You make 2000 random hops on saddles and domes. How many of them raise $E$?\
# (a) 1000 · (b) 200 · (c) 20 · (d) 0.
#
# **q2.** Tokens (1, 0.5), (−0.5, 1.25), (0.25, −1), the query (0.75, −0.5), and β = 1. At the query $E$
# is −0.455. After ten hops it is about\
# (a) -0.455 · (b) -29 · (c) -2e4 · (d) -7.4e8.
#
# **q3.** Eight random tokens in the plane (normally distributed), and β = 1/√2, the usual one of
# attention in two dimensions. The landscape is most often a\
# (a) bowl · (b) trough · (c) saddle · (d) dome.
#
# **q4.** In 64 dimensions, at β = 1/8, you add random tokens of length 1, one by one. The landscape
# stays a bowl up to about this many tokens:\
# (a) 8 · (b) 64 · (c) 230 · (d) 1000.
#
# **q5.** Three random tokens in 8 dimensions. There are 8 curvatures. How many of them are exactly 1,
# at every β?\
# (a) 0 · (b) 3 · (c) 5 · (d) 8.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "d", "q2": "d", "q3": "d", "q4": "c", "q5": "c"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, in five small steps
#
# *(10 minutes, with the example by hand)*
#
# **Step 1: hop and energy.** The score $s_\tau = y_\tau\cdot\xi$ has the gradient $y_\tau$. So
# $\tfrac\beta2 \sum s_\tau^2$ has the gradient $\beta \sum s_\tau\, y_\tau$: the landing. With the bowl,
# $\nabla E = \xi - \beta\sum s_\tau\, y_\tau$, and the hop is again a gradient step of size 1,
# $\xi^+ = \xi - \nabla E$.
#
# **Step 2: a quadratic form.** In matrices, with $\xi$ as a column, $\sum s_\tau^2 = \|Y\xi\|^2$, and
#
# $$E(\xi) = \tfrac12\, \xi^\top (I - \beta\, Y^\top Y)\, \xi, \qquad \xi^+ = \beta\, Y^\top Y\, \xi.$$
#
# $Y^\top Y$ has shape $(d, d)$ and holds the products of the *columns* of $Y$. It is called a **Gram
# matrix**. It is symmetric, and none of its eigenvalues $\lambda_1, \dots, \lambda_d$ is negative.
#
# **Step 3: curvatures.** Cut the landscape along the eigenvector of $\lambda_i$: the parabola has the
# **curvature** $1 - \beta\lambda_i$. The bowl gives the 1, and the tokens take $\beta\lambda_i$ away.
# Every other cut lies between the lowest and the highest curvature, so these two decide:
#
# | lowest | highest | shape |
# |---|---|---|
# | above 0 | above 0 | bowl: 0 is the only valley |
# | 0 | 0 or above | trough: a flat line through 0, or more |
# | below 0 | 0 or above | saddle |
# | below 0 | below 0 | dome: 0 is a peak |
#
# As β grows, each curvature falls from 1 on a straight line. The first one reaches 0 at the **critical
# β**, $1/\lambda_{\max}$. With fewer tokens than dimensions, at least $d - n$ of the $\lambda_i$ are 0:
# there are directions that no token has a part in, and in them the bowl stays as it is.
#
# **Step 4: the orbit.** Along that eigenvector a hop multiplies by $\beta\lambda_i$, and $k$ hops by
# $(\beta\lambda_i)^k$. The sequence of places is called the **orbit** of the query. Where the curvature
# is above 0, the factor is below 1 and the orbit shrinks to 0: whatever the query was, it is
# forgotten. Where it is below 0, the orbit grows for ever; where it is 0, it stands still.
#
# **Step 5: every hop lowers E.** With $g = \nabla E(\xi)$, a quadratic form obeys exactly
# $E(\xi - g) = E(\xi) - \|g\|^2 + \tfrac12\, g^\top (I - \beta Y^\top Y)\, g$. Collect the terms:
#
# $$\boxed{\; E(\xi) - E(\xi^+) = \tfrac12 \|g\|^2 + \tfrac\beta2 \|Y g\|^2 \;\ge\; 0 \;}$$
#
# It is the promise of lesson 3, and the bend of lesson 4 in a closed form. Nothing was assumed about
# β or about the shape. On a saddle or a dome there is no floor, so $E$ can fall at every hop, and never
# arrive. **That an energy falls does not mean that its orbit comes to rest.**

# %% [markdown] name="by_hand"
# ### By hand
#
# Two tokens along the axes, $y_1 = (2, 0)$ and $y_2 = (0, 1)$. Then $Y^\top Y$ is diagonal, with 4 and
# 1, and the curvatures are $1 - 4\beta$ and $1 - \beta$. The critical β is $\tfrac14$.
#
# | β | curvatures | shape |
# |---|---|---|
# | $\tfrac18$ | $\tfrac12,\ \tfrac78$ | bowl |
# | $\tfrac14$ | $0,\ \tfrac34$ | trough |
# | $\tfrac12$ | $-1,\ \tfrac12$ | saddle |
# | $\tfrac54$ | $-4,\ -\tfrac14$ | dome |
#
# One hop at β = ½ from $\xi = (1, 1)$. Scores: $(2, 1)$. Landing:
# $\tfrac12\,(2\,y_1 + 1\,y_2) = (2, \tfrac12)$. Energy before: $1 - \tfrac14 \cdot 5 = -\tfrac14$.
# After: $\tfrac{17}{8} - \tfrac14 \cdot \tfrac{65}{4} = -\tfrac{31}{16}$. It fell by $\tfrac{27}{16}$. And by
# step 5, with $g = (-1, \tfrac12)$ and $Yg = (-2, \tfrac12)$:
# $\tfrac12\cdot\tfrac54 + \tfrac14\cdot\tfrac{17}{4} = \tfrac{27}{16}$. The next cell draws the table.

# %% name="first_picture"
axes_tokens = np.diag([2.0, 1.0])
shapes = {"bowl": 1 / 8, "trough": 1 / 4, "saddle": 1 / 2, "dome": 5 / 4}
with draw.figure(
    ncols=4,
    projections=["3d"] * 4,
    size=(14.4, 4.2),
    words="E of the same two tokens at four values of β. The cut along ξ₁ opens upwards, is flat, "
    "then opens downwards; the cut along ξ₂ turns over only in the last one. (Cut off at −3.)",
) as (picture, axes):
    for ax, (shape, beta) in zip(axes, shapes.items(), strict=True):
        form = np.eye(2) - beta * axes_tokens**2
        draw.draw_surface(ax, lambda x, form=form: x @ form @ x / 2, zlim=(-3, 3), side=25)
        ax.set(title=f"{shape}, β = {beta}", xlabel="ξ₁", ylabel="ξ₂")
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Five functions. After each one, `check(...)` tells you at once what is wrong and what to think
# about. Arrays that you are given must not be changed; what you return must be new. Numbers are
# compared to about nine digits.

# %% [markdown] name="practice_energy"
# ### 1. `linear_energy`: bowl minus squares *(6 minutes)*
#
# $$E(\xi) = \tfrac12 \|\xi\|^2 - \tfrac\beta2 \sum_\tau s_\tau^2, \qquad s = Y\xi$$
#
# One number. It is below 0 wherever the tokens win against the bowl.
#
# <details><summary>It is too far below 0, or never below 0</summary>
# Which of the two terms carries the minus sign, and what stands in front of each?
# </details>
# <details><summary>It is right for one token only</summary>
# Opposite scores must not cancel each other. In which order do you square and sum?
# </details>


# %% nbgrader={"grade_id": "linear_energy", "solution": true}
def linear_energy(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the energy of the linear kernel, one number.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> float(linear_energy(np.array([1.0, 1.0]), np.array([[2.0, 0.0], [0.0, 1.0]]), 0.5))
    -0.25
    """
    ### BEGIN SOLUTION
    s = Y @ xi
    return xi @ xi / 2 - beta * (s @ s) / 2
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(linear_energy)

# %% [markdown] name="practice_step"
# ### 2. `linear_step`: one hop *(6 minutes)*
#
# $$\xi^+ = \beta \sum_\tau s_\tau\, y_\tau = \beta\, Y^\top (Y \xi)$$
#
# Shape `(d,)`. Two products with $Y$ are enough. Do not build the matrix $Y^\top Y$ for it: that costs
# $n\,d^2$ multiplications, the two products cost $2\,n\,d$.
#
# <details><summary>It raises: shapes not aligned</summary>
# First to the scores, <code>(n,)</code>. Then back to the space of the query, <code>(d,)</code>. On which
# side of Y must a vector with one entry a token stand?
# </details>
# <details><summary>A longer query should land farther away, and mine does not</summary>
# Nothing is divided here: no sum of weights, no number of tokens.
# </details>


# %% nbgrader={"grade_id": "linear_step", "solution": true}
def linear_step(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the landing of one hop of the linear kernel, shape (d,).

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> linear_step(np.array([1.0, 1.0]), np.array([[2.0, 0.0], [0.0, 1.0]]), 0.5)
    array([2. , 0.5])
    """
    ### BEGIN SOLUTION
    scores = Y @ xi
    return beta * (scores @ Y)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(linear_step)

# %% [markdown] name="theorem_tested"
# #### Test the theorem *(3 minutes)*
#
# Step 5 says by how much a hop lowers $E$. The next cells make 1000 hops with your two functions, β
# from 0.01 to 100, and compare. Differences are relative to the size of the energies.


# %% name="theorem"
def random_landscapes(count, seed):
    """Yield (xi, Y, beta): 1 to 11 tokens in 1 to 7 dimensions, β from 0.01 to 100."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, d = rng.integers(1, 12), rng.integers(1, 8)
        yield rng.normal(size=d), rng.normal(size=(n, d)), 10 ** rng.uniform(-2, 2)


# %% name="theorem_measured"
rises, errors = 0, []
for query, tokens, beta in random_landscapes(1000, seed=1):
    landing = linear_step(query, tokens, beta)
    before, after = (linear_energy(x, tokens, beta) for x in (query, landing))
    g = query - landing
    promised = g @ g / 2 + beta * np.sum((tokens @ g) ** 2) / 2
    rises += after > before
    errors.append(abs(before - after - promised) / (abs(before) + abs(after)))
print(f"{rises} of 1000 hops raise E; the formula is off by {max(errors):.0e} at most")

# %% [markdown] name="practice_curvatures"
# ### 3. `curvatures`: one for each direction *(8 minutes)*
#
# The eigenvalues of $I - \beta\, Y^\top Y$: an array of $d$ real numbers, **in ascending order**, so
# that the direction that gives way first stands first. `np.linalg.eigvalsh` is made for symmetric
# matrices. It returns real numbers in ascending order; `np.linalg.eigvals` promises neither.
#
# <details><summary>I get three numbers for three tokens in the plane</summary>
# There are two Gram matrices: products of tokens with tokens, shape (n, n), and products of columns
# with columns. A query in the plane has how many directions?
# </details>
# <details><summary>My numbers are right, and in the wrong order</summary>
# If you computed the eigenvalues of the Gram matrix: the largest of them belongs to which curvature?
# </details>


# %% nbgrader={"grade_id": "curvatures", "solution": true}
def curvatures(Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the curvatures of the linear kernel's energy, shape (d,), in ascending order.

    Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> curvatures(np.array([[2.0, 0.0], [0.0, 1.0]]), 0.5)
    array([-1. ,  0.5])
    """
    ### BEGIN SOLUTION
    return np.linalg.eigvalsh(np.eye(Y.shape[1]) - beta * Y.T @ Y)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(curvatures)

# %% [markdown] name="practice_critical"
# ### 4. `critical_beta`: where the bowl ends *(6 minutes)*
#
# $$\beta_c = \frac1{\lambda_{\max}(Y^\top Y)}$$
#
# One number above 0. If all tokens are 0, the bowl never ends: return `np.inf`.
#
# <details><summary>It fails for the zero tokens only</summary>
# A division by zero is a warning in NumPy and an error in Python. Ask first.
# </details>
# <details><summary>It is too large by a square root</summary>
# A singular value of Y, squared, is an eigenvalue of the Gram matrix.
# </details>


# %% nbgrader={"grade_id": "critical_beta", "solution": true}
def critical_beta(Y: np.ndarray) -> float:
    """Return the beta at which the lowest curvature is 0; infinity when all tokens are 0.

    Y: tokens as rows, shape (n, d).

    >>> float(critical_beta(np.array([[2.0, 0.0], [0.0, 1.0]])))
    0.25
    """
    ### BEGIN SOLUTION
    highest = np.linalg.eigvalsh(Y.T @ Y)[-1]
    return 1 / highest if Y.any() else np.inf
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(critical_beta)

# %% [markdown] name="practice_classify"
# ### 5. `classify`: name the shape *(9 minutes)*
#
# Return one of the words `"bowl"`, `"trough"`, `"saddle"`, `"dome"`, by the table of step 3. In the
# table stands "0". Computed curvatures are hardly ever exactly 0, so here a curvature counts as 0 when
# its absolute value is at most `tol`; above 0 means above `tol`, below 0 means below `-tol`.
#
# <details><summary>Most cases pass, the exactly critical ones do not</summary>
# Print the lowest curvature of such a case. Is it 0?
# </details>
# <details><summary>A dome comes out as a bowl</summary>
# Two negative numbers have a positive product. Look at the lowest and the highest curvature, not at the
# determinant.
# </details>
# <details><summary>Must I test every combination?</summary>
# Ask in the order bowl, trough, dome. What remains is a saddle.
# </details>


# %% nbgrader={"grade_id": "classify", "solution": true}
def classify(Y: np.ndarray, beta: float, tol: float = 1e-9) -> str:
    """Return the shape of the linear kernel's energy: "bowl", "trough", "saddle" or "dome".

    Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.
    tol: a curvature of at most this size counts as 0.

    >>> [classify(np.array([[2.0, 0.0], [0.0, 1.0]]), beta) for beta in (0.125, 0.25, 0.5, 1.25)]
    ['bowl', 'trough', 'saddle', 'dome']
    """
    ### BEGIN SOLUTION
    bends = curvatures(Y, beta)
    lowest, highest = bends[0], bends[-1]
    if lowest > tol:
        return "bowl"
    if lowest >= -tol:
        return "trough"
    return "dome" if highest < -tol else "saddle"
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(classify)

# %% [markdown] name="neighbour"
# #### The neighbour: tanh *(3 minutes)*
#
# By w2, $\ln\cosh u \approx u^2/2$ near 0. So near 0 the tanh energy of lesson 5,
# $\tfrac12\|\xi\|^2 - \tfrac1\beta\sum_\tau \ln\cosh(\beta s_\tau)$, should be your linear energy. It has the
# same critical β: there its single valley at 0 splits. The next cell goes towards 0. By what power of
# ten does the difference shrink each time, and which power of $u$ comes after $u^2$ in $\ln\cosh u$?

# %% name="neighbour_measured"
for length in (1.0, 0.1, 0.01, 0.001):
    query = length * A_xi / np.linalg.norm(A_xi)
    ln_cosh = np.log1p(np.sinh(A_Y @ query) ** 2) / 2  # accurate for small scores
    gap = query @ query / 2 - ln_cosh.sum() - linear_energy(query, A_Y, 1.0)
    print(f"{length:6} away from 0: the tanh energy is higher by {gap:.1e}")

# %% [markdown] name="neighbour_answer"
# <details><summary>Which power</summary>
#
# Ten times nearer, and the difference is $10^4$ times smaller: the next power is $u^4$. (The first line
# is too far out to show it.)
#
# </details>

# %% [markdown] name="see_it"
# ## See it
#
# Six panels, drawn by *your* functions. Two show the energy, from above and as a surface; two show the
# curvatures, now and over β. The last two follow ten hops: the distance from 0, and the energy. Their
# upright axes are logarithmic. That of the energy has both signs: what lies between −1 and 1 is pressed
# together around 0. *(10 minutes)*
#
# Three questions, one for each control. Write down what you expect, then move it.
#
# - **β**: go from the lowest end to the highest. Which shapes do you pass, in which order? What happens to
#   the distance when the first curvature passes 0? Does the energy rise anywhere?
# - **query**: set β = 0.5, a saddle. Where must the query be, so that the distance first *shrinks*? Does
#   it go on shrinking? And the energy, meanwhile?
# - **n**: with one token, which curvature does not move when β does? Is there any β that makes a dome?
#   Along which line would the query be forgotten in a single hop?

# %% name="explore"
explore.shape_and_orbit(linear_energy, linear_step, curvatures, critical_beta, classify)

# %% [markdown] name="see_answer"
# <details><summary>What there was to see</summary>
#
# - Bowl, saddle, dome. A trough lies between bowl and saddle, at the critical β only: the slider jumps
#   over it. Below the critical β the distance falls, above it rises in the end. The energy falls at
#   every hop, everywhere.
# - Near the direction of the higher curvature. The part of the query along it shrinks; the part along
#   the other direction grows, however small it was, and takes over. An orbit that never grows exists,
#   but a mouse does not hit it. The energy falls before, during and after.
# - The one at a right angle to the token. It is 1, so there is never a dome. On the line at a right
#   angle the score is 0, and so is the landing.
#
# </details>

# %% [markdown] name="claim"
# ## Check two claims
#
# ### A sentence
#
# > *"As soon as an eigenvalue of* $\beta\, Y^\top Y$ *is above 1, the landscape is a saddle."*
#
# Draw 500 times 8 tokens with `rng.normal`, once in 2 dimensions and once in 16, with β = 1/√d. Of the
# landscapes with such an eigenvalue (that is, a curvature below 0), what share are saddles? Set
# `saddles_2` and `saddles_16`, numbers from 0 to 1. Then write your verdict on the claim: does it hold
# `"always"`, `"sometimes"` or `"never"`? *(8 minutes)*

# %% nbgrader={"grade_id": "claim_measurement", "solution": true}
rng = np.random.default_rng(0)
saddles_2, saddles_16 = None, None  # measure them
verdict = ""  # "always", "sometimes" or "never"
### BEGIN SOLUTION
found = {}
for d in (2, 16):
    drawn = [rng.normal(size=(8, d)) for _ in range(500)]
    no_bowls = [tokens for tokens in drawn if curvatures(tokens, d**-0.5)[0] < 0]
    found[d] = np.mean([classify(tokens, d**-0.5) == "saddle" for tokens in no_bowls])
saddles_2, saddles_16 = found[2], found[16]
verdict = "sometimes"
### END SOLUTION


# %% name="claim_again"
def measure_again(d, count):
    """Draw again; return the share of saddles among saddles and domes, and of domes among all."""
    drawn = np.random.default_rng(62).normal(size=(count, 8, d))
    shapes = [classify(tokens, d**-0.5) for tokens in drawn]
    saddles, domes = shapes.count("saddle"), shapes.count("dome")
    return saddles / (saddles + domes), domes / count


# %% name="claim_check"
if saddles_2 is None or saddles_16 is None:
    print("Measure `saddles_2` and `saddles_16` first.")
else:
    (again_2, domes), (again_16, _) = measure_again(2, 2000), measure_again(16, 500)
    for d, yours, share in ((2, saddles_2, again_2), (16, saddles_16, again_16)):
        mark = "✓" if abs(yours - share) < 0.05 else f"✗ measured again: {share:.1%}"
        print(f"an eigenvalue above 1, 8 tokens in {d:2} dimensions: {yours:.1%} saddles {mark}")
    print(f"of 2000 more in 2 dimensions, with or without one, {domes:.1%} are domes")
    measured = {(1, 1): "always", (0, 0): "never"}.get((again_2, again_16), "sometimes")
    mark = "✓" if verdict.strip().lower() == measured else "✗"
    print(f"your verdict: {verdict or 'not written yet'} {mark}")

# %% [markdown] name="claim_settled"
# <details><summary>What is true</summary>
#
# An eigenvalue above 1 takes the floor away, always. That makes a saddle only if another curvature
# is left that is not below 0. With fewer tokens than dimensions there is one, it is 1. With more
# tokens than dimensions the tokens reach every direction, and the usual landscape is a dome. And an
# eigenvalue of exactly 1 is a trough.
#
# </details>

# %% [markdown] name="claim_table"
# ### A table
#
# This table of the three kernels goes round. With $u_\tau = \beta s_\tau$:
#
# | | softmax | tanh | linear |
# |---|---|---|---|
# | **factor** of a token | $e^{u}$ | $\cosh u$ | $u^2/2$ |
# | **concave** part of $E$ | $-\frac1\beta\,\mathrm{lse}$ | $-\frac1\beta \sum \ln\cosh u_\tau$ | $-\frac\beta2 \sum s_\tau^2$ |
# | **landing** | $\mathrm{softmax}(u)\, Y$ | $\tanh(u)\, Y$ | $u\, Y$ |
# | **form** of $E$ | $n$ bumps | $2^n$ bumps | quadratic |
# | **landscape** | $n$ valleys | $2^n$ valleys | a saddle |
#
# Here $\mathrm{lse}(\xi) = \frac1\beta \ln \sum_\tau e^{u_\tau}$, as in all lessons. Begin with one cell,
# the concave part of the softmax column. A hop leads to minus the gradient of the concave part (lesson
# 3). So take that gradient, and compare. Take the three tokens of q2, `A_Y`, and its query, `A_xi`. Let
# `table_concave(x)` be the cell at the query `x`; `approx_fprime(A_xi, table_concave, 1e-7)` is its
# gradient at `A_xi`. For β = 1/8, 1 and 8, in this order, list in `too_far` how many times as long
# minus this gradient is as the landing $\mathrm{softmax}(u)\,Y$. Then say what is wrong: `fault` is
# `"nothing"`, `"one 1/β too many"` or `"one β too many"`. *(8 minutes)*

# %% nbgrader={"grade_id": "table_measurement", "solution": true}
too_far = []  # three numbers
fault = ""  # "nothing", "one 1/β too many" or "one β too many"
### BEGIN SOLUTION
for beta in (1 / 8, 1.0, 8.0):
    table_gradient = approx_fprime(A_xi, lambda x, b=beta: -logsumexp(b * A_Y @ x) / b**2, 1e-7)
    landing = softmax(beta * A_Y @ A_xi) @ A_Y
    too_far.append(np.linalg.norm(table_gradient) / np.linalg.norm(landing))
fault = "one 1/β too many"
### END SOLUTION


# %% name="table_again_measured"
def reach_again(beta):
    """Return how many times as far as the landing the table's cell leads, by its slope."""
    landing = softmax(beta * A_Y @ A_xi) @ A_Y
    up, down = (-logsumexp(beta * A_Y @ (A_xi + h * landing)) / beta**2 for h in (1e-5, -1e-5))
    return (down - up) / 2e-5 / (landing @ landing)


# %% name="table_measured"
if len(too_far) != 3:
    print("List the three ratios first.")
else:
    again = [reach_again(beta) for beta in (1 / 8, 1.0, 8.0)]
    for beta, yours, ratio in zip((1 / 8, 1.0, 8.0), too_far, again, strict=True):
        mark = "✓" if np.isclose(yours, ratio, rtol=0.01) else f"✗ measured again: {ratio:.4f}"
        print(f"β = {beta:5}: {yours:.4f} times as far as the hop {mark}")
    wrong = {"nothing": 0, "one 1/β too many": -1, "one β too many": 1}
    slope = np.log(again[2] / again[0]) / np.log(64)  # which power of β the ratio is
    measured = min(wrong, key=lambda name: abs(wrong[name] - slope))
    mark = "✓" if fault.strip().lower() == measured else "✗"
    print(f"fault: {fault or 'not written yet'} {mark}")

# %% [markdown] name="table_task"
# ### Your own table *(12 minutes)*
#
# Now build the table that is right, from functions. Each row is a dictionary with one entry a kernel:
# put yours in place of `None` and `""`. The cell after it checks all fifteen by machine. It knows only
# the weights that define a kernel, and measures the rest.
#
# - `factor`: functions of a number `u`. Softmax *adds* the factors of all tokens, the other two
#   *multiply* them. Minus the logarithm of the result, divided by β, has to be the concave part.
#   What must then stand in the linear column, so that its logarithm is $u^2/2$?
# - `concave` and `landing`: functions of `(xi, Y, beta)`. In the linear column use your own two; the
#   bowl is no part of `concave`. You have written the others in lessons 1 and 5; `logsumexp`,
#   `softmax`, `np.cosh` and `np.tanh` are enough here.
# - `form`: `"n bumps"`, `"2^n bumps"` or `"quadratic"`.
# - `landscape`: `"n valleys"`, `"2^n valleys"`, `"a floor and some valleys"`, `"a saddle"` or
#   `"bowl, trough, saddle or dome"`. One word may stand in two columns.

# %% nbgrader={"grade_id": "kernel_rows", "solution": true}
factor = dict(softmax=None, tanh=None, linear=None)
concave = dict(softmax=None, tanh=None, linear=None)
landing = dict(softmax=None, tanh=None, linear=None)
form = dict(softmax="", tanh="", linear="")
landscape = dict(softmax="", tanh="", linear="")
### BEGIN SOLUTION
factor = dict(softmax=np.exp, tanh=np.cosh, linear=lambda u: np.exp(u**2 / 2))
concave = dict(
    softmax=lambda xi, Y, beta: -logsumexp(beta * Y @ xi) / beta,
    tanh=lambda xi, Y, beta: -np.log(np.cosh(beta * Y @ xi)).sum() / beta,
    linear=lambda xi, Y, beta: linear_energy(xi, Y, beta) - xi @ xi / 2,
)
landing = dict(
    softmax=lambda xi, Y, beta: softmax(beta * Y @ xi) @ Y,
    tanh=lambda xi, Y, beta: np.tanh(beta * Y @ xi) @ Y,
    linear=linear_step,
)
form = dict(softmax="n bumps", tanh="2^n bumps", linear="quadratic")
landscape = dict.fromkeys(["softmax", "tanh"], "a floor and some valleys")
landscape["linear"] = "bowl, trough, saddle or dome"
### END SOLUTION

# %% name="kernel_table_checked"
kernel_table(factor, concave, landing, form, landscape)

# %% [markdown] name="table_again"
# And the table that goes round? The next cell takes your table, puts the entries of the other one in
# where they differ, and lets the same machine judge.

# %% name="kernel_table_circulating"
kernel_table(
    dict(factor, linear=lambda u: u**2 / 2),
    dict(concave, softmax=lambda xi, Y, beta: -logsumexp(beta * Y @ xi) / beta**2),
    landing,
    form,
    dict(softmax="n valleys", tanh="2^n valleys", linear="a saddle"),
)

# %% [markdown] name="table_settled"
# <details><summary>What is true</summary>
#
# Five cells of fifteen are false. In $-\frac1\beta\,\mathrm{lse}$ the $1/\beta$ is there twice, because lse
# holds it already: at β = 1/8 such a hop goes 8 times too far. In the linear column $u^2/2$ is a term of
# the energy and no factor: the factor is $e^{u^2/2}$. Written like this the last column continues the
# second, since $\cosh u \approx e^{u^2/2}$ near 0. And bumps are no valleys (lessons 2 and 5), and
# an eigenvalue above 1 is no saddle yet.
#
# </details>

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Scroll so that the theory is out of sight. Answer in your own words, in the cell below, then open the
# answers. *(5 minutes)*
#
# 1. There are two Gram matrices, $Y^\top Y$ and $Y Y^\top$. Which one holds the curvatures, and why?
# 2. Why does "the energy falls at every hop" not mean that the hops converge?
# 3. Name the four shapes, and say how the lowest and the highest curvature tell them apart.

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. $Y^\top Y$, shape $(d, d)$: a query has $d$ directions, and each has a curvature. The other one has an
#    eigenvalue for each token. Where they are not 0 the two have the same eigenvalues, but not the same
#    number of zeros. In lesson 7 a matrix of this shape again says how fast hops settle.
# 2. Because an energy without a floor can fall for ever. Here the orbit follows it to infinity. Softmax
#    and tanh have a floor; even there lesson 7 stops a walk by how far it still moves, not by its energy.
# 3. Bowl: the lowest is above 0. Trough: the lowest is 0. Dome: the highest is below 0. Saddle: the
#    lowest is below 0, the highest is not. In lesson 7 some walks end on a saddle of the softmax energy,
#    and you tell by the same test that it is no valley.
#
# </details>
#
# And your predictions? The next cells measure all five with your functions.


# %% name="measure"
def rises_without_a_floor(count=2000):
    """Count the hops that raise E among 2000 on saddles and domes."""
    raised = seen = 0
    for query, tokens, beta in random_landscapes(4 * count, seed=5):
        if seen < count and classify(tokens, beta) in ("saddle", "dome"):
            after = linear_energy(linear_step(query, tokens, beta), tokens, beta)
            raised += after > linear_energy(query, tokens, beta)
            seen += 1
    return raised


def energy_after(hops):
    """Return the energy of the query after so many hops at β = 1."""
    at = A_xi
    for _ in range(hops):
        at = linear_step(at, A_Y, 1.0)
    return linear_energy(at, A_Y, 1.0)


# %% name="measure_shapes"
def most_common_shape(count=500):
    """Return the most common shape for 8 random tokens in the plane at β = 1/√2."""
    draws = np.random.default_rng(1).normal(size=(count, 8, 2))
    found = [classify(tokens, 2**-0.5) for tokens in draws]
    return max(set(found), key=found.count)


def last_bowl(seed):
    """Return how many tokens of length 1 in 64 dimensions leave a bowl at β = 1/8."""
    tokens = np.random.default_rng(seed).normal(size=(1000, 64))
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    low, high = 1, 1000
    while high - low > 1:
        middle = (low + high) // 2
        bowl = classify(tokens[:middle], 1 / 8) == "bowl"
        low, high = (middle, high) if bowl else (low, middle)
    return low


# %% name="reveal"
three_in_eight = np.random.default_rng(0).normal(size=(3, 8))
reveal(
    prediction,
    {
        "q1": lambda: pick(rises_without_a_floor(), a=1000, b=200, c=20, d=0),
        "q2": lambda: pick(energy_after(10), a=-0.455, b=-29, c=-2e4, d=-7.4e8),
        "q3": lambda: pick(most_common_shape(), a="bowl", b="trough", c="saddle", d="dome"),
        "q4": lambda: pick(np.median([last_bowl(seed) for seed in range(3)]),
                           a=8, b=64, c=230, d=1000),
        "q5": lambda: pick(sum(np.abs(curvatures(three_in_eight, 1.0) - 1) < 1e-9),
                           a=0, b=3, c=5, d=8),
    },
)  # fmt: skip

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: a map of the shapes *(25 minutes)*
#
# Write `phase_diagram(Y, ns, betas)`: a table of numbers with one row a β and one column a number of
# tokens. In the column for $n$ the landscape has the *first n* rows of $Y$. A bowl is 0, a trough 1, a
# saddle 2, a dome 3. A map like this, of what state prevails under which conditions, is called a
# **phase diagram**.
#
# Then draw the map for random tokens of length 1 in $d = 64$ dimensions, with $n$ from well below $d$ to
# well above it, and β from where all are bowls to where domes begin. (At $n = d$ domes begin far off
# the map: compute that β as $1/\lambda_{\min}$.) Compare the line where the bowl ends with a rule for
# many random tokens of length $\ell$, which a theorem on random matrices gives (Marchenko and Pastur,
# below):
#
# $$\beta\, \ell^2 \left(1 + \sqrt{n/d}\,\right)^2 = 1.$$
#
# In the report: how far is the rule off, for which $n$? For which $n$ are there domes at all, and why? If
# the energy falls at every hop all over the map, in which part of it do the hops come to rest?
#
# <details><summary>A large map takes long</summary>
# Compute the eigenvalues of the Gram matrix once per n; β only scales them.
# </details>
#
# | read by a person | points |
# |---|---|
# | figure: the regions can be told apart, with readable axes, both logarithmic, and words | 2 |
# | measurement: the end of the bowl (or a median of several draws) is within 20 % of the rule (in β) from $n = 64$ on, within 10 % from 256 on | 1 |
# | report: domes are found exactly for $n \ge d$, and the reason is given | 2 |
# | report: 0 hops that raise E are shown in all regions, and only the bowl is said to converge to 0 | 1 |


# %% nbgrader={"grade_id": "phase_diagram", "solution": true}
def phase_diagram(Y: np.ndarray, ns: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """Return the shape for each beta (rows) and each number of tokens (columns), as a number.

    Y: tokens as rows, shape (N, d).  ns: whole numbers from 1 to N, shape (k,); a column for n
    uses the first n tokens.  betas: inverse temperatures, shape (m,), above 0.
    Returns shape (m, k): 0 is a bowl, 1 a trough, 2 a saddle, 3 a dome.

    >>> phase_diagram(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1, 2]), np.array([0.25, 1.25]))
    array([[1, 1],
           [2, 3]])
    """
    ### BEGIN SOLUTION
    words = ["bowl", "trough", "saddle", "dome"]
    return np.array([[words.index(classify(Y[:n], beta)) for n in ns] for beta in betas])
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(phase_diagram)

# %% nbgrader={"grade_id": "project_numbers", "solution": true}
# Your measurements: the end of the bowl against the rule, domes, hops that raise E.
### BEGIN SOLUTION
unit = np.random.default_rng(0).normal(size=(512, 64))
unit /= np.linalg.norm(unit, axis=1, keepdims=True)
ns, betas = np.array([16, 32, 48, 64, 80, 128, 256, 512]), np.geomspace(0.02, 2e4, 40)
diagram = phase_diagram(unit, ns, betas)
print("  n  end of the bowl   rule   ratio   domes from β =")
for n, column in zip(ns, diagram.T, strict=True):
    end, rule = critical_beta(unit[:n]), 1 / (1 + np.sqrt(n / 64)) ** 2
    first = f"{betas[(column == 3).argmax()]:.3g}" if (column == 3).any() else "none"
    print(f"{n:3}{end:17.4f}{rule:7.4f}{end / rule:8.3f}   {first}")
hops = [(np.cos(np.arange(64) + k), unit[:n], b) for k, n in enumerate(ns) for b in betas]
raised = sum(linear_energy(linear_step(*hop), *hop[1:]) > linear_energy(*hop) for hop in hops)
print(f"{raised} of {len(hops)} hops, one at each point of the map, raise E")
### END SOLUTION

# %% nbgrader={"grade_id": "project_figure", "solution": true}
# Your map.
### BEGIN SOLUTION
ends = np.array([critical_beta(unit[:n]) for n in ns])
starts = np.where((diagram == 3).any(axis=0), betas[(diagram == 3).argmax(axis=0)], betas[-1])
with draw.figure(
    size=(8, 5.4),
    words="Bowls below, saddles in between, domes above. The bowl ends a little above the rule. Domes "
    "need at least 64 tokens, as many as there are dimensions; the more, the smaller their β.",
) as (picture, (ax,)):
    for low, high, role, name in (
        (betas[0], ends, "landing", "bowl"), (ends, starts, "token", "saddle"),
        (starts, betas[-1], "other", "dome"),
    ):  # fmt: skip
        draw.draw_band(ax, ns, low, high, role, label=name)
    draw.draw_path(ax, np.column_stack([ns, ends]), "landing", label="end of the bowl", dots=True)
    draw.draw_path(ax, np.column_stack([ns, 1 / (1 + np.sqrt(ns / 64)) ** 2]), "ink", label="rule")
    ax.set(xscale="log", yscale="log", xlabel="tokens n", ylabel="β", ylim=(betas[0], betas[-1]))
    ax.set_xticks(ns, ns), ax.minorticks_off()
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
picture
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# From 64 tokens on the bowl ends within 10 % of the rule, always a little later than it says; for 16
# tokens it ends about a fifth later. The rule holds for infinitely many tokens and dimensions. With
# fewer tokens than dimensions at least d − n curvatures are 1 at every β, so a dome is impossible. From
# n = d on random tokens reach every direction, and a large enough β turns all of them over; at n = d
# itself this β is very large, because one direction is hardly reached. No hop raises E anywhere on the
# map, but only in the bowl do hops converge: to 0, whatever the query was. On saddles and domes E falls
# without end, and the query runs away, unless it starts exactly in directions that shrink.
# ### END SOLUTION

# %% [markdown] name="limits"
# ## What was not shown
#
# - Linear attention as it is used divides by the sum of the weights, or puts a positive function of query
#   and key in place of the score. Neither is this quadratic energy any more.
# - One hop of a trained head, and what a whole model does with it. A single hop never runs away: orbits
#   are about repeated hops.
# - Numbers end near $10^{308}$: an orbit on a saddle or dome comes to inf, and then to nan, after enough
#   hops.
# - Random tokens of independent directions. Trained ones share directions, and the bowl ends earlier.
#
# **Read on.** A. Katharopoulos and others, *Transformers are RNNs: fast autoregressive transformers with
# linear attention*, ICML 2020 (arXiv 2006.16236). I. Schlag, K. Irie and J. Schmidhuber, *Linear
# transformers are secretly fast weight programmers*, ICML 2021 (arXiv 2102.11174). V. A. Marchenko and
# L. A. Pastur, *Distribution of eigenvalues for some sets of random matrices*, Mathematics of the
# USSR-Sbornik 1 (1967): the rule of the project. A. L. Yuille and A. Rangarajan, *The concave-convex
# procedure*, Neural Computation 15 (2003): why no hop climbs.
