# %% [markdown] name="challenge"
# # 5 · The tanh kernel and its corners
#
# A **kernel** is what turns scores into weights. So far it was the softmax. Now every token votes
# by itself: for, against, or hardly at all, by a tanh. You will read that the new energy is "a
# Gaussian mixture with $2^n$ modes", so that ten tokens would make 1024 of them. **How many valleys
# does it have?** You will count the components and the valleys, both.
#
# When you are done you can
#
# - write the energy and the hop of the tanh kernel, safely for any score,
# - turn n tokens into $2^n$ components, and say what that costs,
# - tell by a sign condition which components are valleys when β is large,
# - give the β below which there is a single valley, whatever n.
#
# **Time** about two hours. **You need** the mixture of lesson 2 and the hop of lesson 3. The
# formulas are repeated where you need them.

# %% name="imports"
import math
import time

import numpy as np
from scipy.special import logsumexp, softmax

from hopping import check, check_answers, commit, draw, explore, pick, reveal

# %% [markdown] name="warm_up"
# ## Warm up
#
# From lessons 2 and 3. Remember the energy
# $E(\xi) = \tfrac12\lVert\xi\rVert^2 - \mathrm{lse}(\xi)$, its bumps
# $\pi_\tau\, e^{-\beta\lVert\xi-y_\tau\rVert^2/2}$, and its gradient $g$. Write a letter for each,
# then run the cells. *(4 minutes)*
#
# **w1.** One centre is twice as long as another. Then ln π of its bump is larger by a factor of\
# (a) 1.4 · (b) 2 · (c) 4 · (d) 16.
#
# **w2.** Two centres on a line, at +2 and −2. One valley splits into two at β =\
# (a) 0.25 · (b) 0.5 · (c) 2 · (d) 4.
#
# **w3.** A hop leads to the lowest point of the tangent majoriser. It lowers E at least by
# $\lVert g\rVert^2$ times\
# (a) 0 · (b) 0.25 · (c) 0.5 · (d) 1.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "c", "w2": "a", "w3": "c"}
### END SOLUTION


# %% name="warm_up_measured"
def E(xi, Y, beta):
    """Return the softmax kernel's energy."""
    return np.dot(xi, xi) / 2 - logsumexp(np.dot(Y, xi) * beta) / beta


def split_of(r, low=0.01, high=16.0):
    """Halve an interval of β: below the split the middle of centres ±r curves upwards."""
    pair, h = np.array([[r], [-r]]), np.array([1e-3])
    while high - low > 1e-6:
        beta = (low + high) / 2
        low, high = (beta, high) if E(h, pair, beta) > E(0 * h, pair, beta) else (low, beta)
    return low


# %% name="warm_up_gain"
def least_gain():
    """Return the least drop of E in 300 random hops, in units of the squared gradient."""
    rng, gains = np.random.default_rng(0), []
    for _ in range(300):
        xi, Y = rng.normal(size=2), rng.normal(size=(rng.integers(1, 5), 2))
        landing = softmax(2 * Y @ xi) @ Y
        gains.append((E(xi, Y, 2.0) - E(landing, Y, 2.0)) / np.sum((xi - landing) ** 2))
    return min(gains)


# %% name="warm_up_check"
short, long = np.array([0.5, 1.0]), np.array([1.0, 2.0])
check_answers(
    answers,
    {
        # At its own centre a single bump has the height π, and E is -ln π / β.
        "w1": lambda: pick(E(long, [long], 3.0) / E(short, [short], 3.0), a=1.4, b=2, c=4, d=16),
        "w2": lambda: pick(split_of(2.0), a=0.25, b=0.5, c=2, d=4),
        "w3": lambda: pick(least_gain(), a=0, b=0.25, c=0.5, d=1),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# The query $\xi$ gives token $y_\tau$ the score $s_\tau = y_\tau\cdot\xi$, as before. The **tanh
# kernel** gives it the weight $\tanh(\beta s_\tau)$, between −1 and 1. Its energy will turn out to
# be a mixture again. The components stand on all the **signed sums**
# $\pm y_1 \pm y_2 \dots \pm y_n$. We call these places **corners**. A **valley** is a local minimum
# of the energy, as before. Commit to an answer for each question. A guess counts. *(5 minutes)*
#
# **q1.** Ten random tokens in the plane (normally distributed) have 1024 corners. When β grows
# without bound, the number of valleys is, on average,\
# (a) 2 · (b) 6.3 · (c) 20 · (d) 1024.
#
# **q2.** Four tokens of length 1, each orthogonal to the others, and a large β. The number of
# valleys is\
# (a) 2 · (b) 4 · (c) 8 · (d) 16.
#
# **q3.** Two tokens, (1, 0) and (1.2, 0.3), and a large β. The number of valleys is\
# (a) 1 · (b) 2 · (c) 3 · (d) 4.
#
# **q4.** Let $\lambda_{\max}$ be the largest eigenvalue of $Y^\top Y$. For five random tokens in
# the plane and $\beta = 0.99/\lambda_{\max}$ the number of valleys is\
# (a) 1 · (b) 2 · (c) 5 · (d) 32.
#
# **q5.** The energy can be computed from n terms, or from a mixture of bumps, one on each corner.
# From 8 tokens to 16, the number of bumps grows by a factor of\
# (a) 2 · (b) 16 · (c) 256 · (d) 65536.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "b", "q2": "d", "q3": "b", "q4": "a", "q5": "c"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, in five small steps
#
# *(10 minutes)*
#
# **Step 1: votes.** The hop of the tanh kernel lands at
#
# $$\xi^+ = \sum_\tau \tanh(\beta s_\tau)\, y_\tau .$$
#
# Nothing is divided by a sum. A token with a negative score pushes its *opposite* forward. So the
# landing is no average; it can be far outside the tokens.
#
# **Step 2: the energy.** As before we want $\xi^+ = \xi - \nabla E$. The slope of $\ln\cosh u$ is
# $\tanh u$. So take
#
# $$E(\xi) = \tfrac12\lVert\xi\rVert^2 - \frac1\beta \sum_\tau \ln\cosh(\beta s_\tau).$$
#
# Once more the β from inside cancels the $1/\beta$ in front. tanh never falls, so $\ln\cosh$ is
# convex, and minus it is concave. The tangent majoriser of lesson 3 works unchanged: **a hop lowers
# E by at least $\tfrac12\lVert g\rVert^2$**, at every β.
#
# **Step 3: a product is a sum.** $\cosh u = \tfrac12(e^u + e^{-u})$: one exponential for, one
# against. Multiply n of them, and every choice of n signs $\varepsilon_\tau = \pm1$ appears once:
#
# $$\prod_\tau \cosh(\beta s_\tau)
# = \frac{1}{2^n} \sum_\varepsilon e^{\beta\, z_\varepsilon\cdot\xi},
# \qquad z_\varepsilon = \sum_\tau \varepsilon_\tau\, y_\tau .$$
#
# The $z_\varepsilon$ are the corners. Take logarithms: **the tanh kernel of n tokens is the softmax
# kernel of $2^n$ corners**, plus a constant for the n halves. Polarise as in lesson 2:
#
# $$E(\xi) = -\frac1\beta \ln \sum_\varepsilon e^{\beta\lVert z_\varepsilon\rVert^2/2
# \,-\, \beta\lVert\xi-z_\varepsilon\rVert^2/2} \;+\; \frac{n\ln 2}{\beta}.$$
#
# Two tokens: the corners span a parallelogram. More tokens in the plane: the outermost corners form
# a **zonogon**, a polygon whose opposite sides are parallel and equally long.
#
# **Step 4: which corners are valleys?** Let β grow without bound. Then tanh becomes the sign of the
# score. A hop from a corner leaves it in place when every token votes there as it does in the
# corner:
#
# $$\varepsilon_\tau\,(y_\tau\cdot z_\varepsilon) > 0 \quad\text{for every } \tau .$$
#
# Such a corner is called **stable**; a valley comes as near to it as you like. Is every choice of
# signs possible? Each token cuts the space in two, where its score is positive and where it is
# negative. In the plane, n lines through the origin make $2n$ sectors, and each sector has one
# pattern of signs. So at most $2n$ corners can be stable. In d dimensions the bound is
# $2\sum_{i<d} \binom{n-1}{i}$. Between the lines E is a bowl, and on a line it has a downward kink:
# there are no other valleys.
#
# **Step 5: small β.** The tokens take curvature away from the bowl, and nowhere more than at the
# origin, where tanh is steepest:
#
# $$\nabla^2 E = I - \beta\, Y^\top \mathrm{diag}\big(1-\tanh^2(\beta s)\big)\, Y,
# \qquad \nabla^2 E(0) = I - \beta\, Y^\top Y .$$
#
# With $\lambda_{\max}$ the largest eigenvalue of $Y^\top Y$: while $\beta\lambda_{\max} < 1$, E
# curves upwards everywhere, and **the origin is the only valley**. When β passes
# $1/\lambda_{\max}$ the origin stops being one, and valleys come in opposite pairs.

# %% [markdown] name="by_hand"
# ### By hand
#
# $y_1 = (1, 0)$ and $y_2 = (\tfrac12, 1)$. Signs in the order $++$, $+-$, $-+$, $--$.
#
# - Corners: $(1.5, 1)$, $(0.5, -1)$, $(-0.5, 1)$, $(-1.5, -1)$: the diagonals of the parallelogram
#   are twice the sum and twice the difference of the tokens.
# - Is $+-$ stable? At $z = (0.5, -1)$: $y_1\cdot z = 0.5$, the sign $+$ holds. And
#   $y_2\cdot z = -0.75$, the sign $-$ holds. Yes. So is $++$, and with each corner its opposite: four of four.
# - Take $y_2 = (1.2, 0.3)$ instead. The corner $+-$ is $(-0.2, -0.3)$, and $y_1\cdot z = -0.2$:
#   token 1 is against it. Not stable. **The longer token drags the shorter one along.**
# - In the middle, $\ln\cosh 0 = 0$ for every token. So $E(0) = 0$, at every β.

# %% name="first_picture"
u, corners = np.linspace(-4, 4, 161), np.array([[1.5, 1], [0.5, -1], [-1.5, -1], [-0.5, 1]])
curves = {"ln cosh u": np.log(np.cosh(u)), "|u| − ln 2": abs(u) - np.log(2), "u²/2": u**2 / 2}
with draw.figure(
    ncols=2,
    words="Left: ln cosh u is a parabola near 0, and a roof lowered by ln 2 far out. Right: "
    "two tokens, drawn as arrows, have four signed sums: the corners of a parallelogram.",
) as (picture, (left, right)):
    for (label, heights), role in zip(curves.items(), ("landing", "other", "ink"), strict=True):
        draw.draw_path(left, np.column_stack([u, heights]), role, label=label)
    draw.draw_path(right, corners, "ink", closed=True)
    for token in ([1, 0], [0.5, 1]):
        draw.draw_path(right, [[0, 0], token], "token", arrow=True)
    draw.draw_points(right, corners, "token", names=("++", "+−", "−−", "−+"))
    left.set(xlabel="u", ylabel="height", ylim=(-1, 4)), left.legend()
    right.set(xlim=(-2.2, 2.2), ylim=(-1.6, 1.6), xlabel="ξ₁", ylabel="ξ₂", aspect="equal")
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Six functions: three for the direct road, three for the corners. As before, do not change what you
# are given, and return something new. Numbers are compared to about eight digits.

# %% [markdown] name="practice_log_cosh"
# ### 1. `log_cosh`: a vote's energy *(10 minutes)*
#
# $$\ln\cosh u = \ln \tfrac12\big(e^{u} + e^{-u}\big)$$
#
# Elementwise: the result has the shape of `u`, whatever that is. `np.cosh` overflows near 710, and
# your scores will be larger. The trick of lesson 1 works again: take the larger of the two
# exponentials out of the sum. Which one that is depends on the sign of u.
#
# <details><summary>I get inf</summary>
# Write the sum as its larger term times something between 1 and 2. The logarithm of the larger term
# is a simple function of u.
# </details>
# <details><summary>It is right for large u and wrong at 0</summary>
# Compare the two curves in the picture above. What became of the smaller exponential?
# </details>
# <details><summary>It is right for positive u only</summary>
# The picture is symmetric.
# </details>


# %% nbgrader={"grade_id": "log_cosh", "solution": true}
def log_cosh(u: np.ndarray) -> np.ndarray:
    """Return ln cosh of every entry, in the shape of u, without overflow.

    u: numbers in an array of any shape, of any size.

    >>> log_cosh(np.array([0.0, -1000.0])).round(4)
    array([  0.    , 999.3069])
    """
    ### BEGIN SOLUTION
    size = np.abs(u)
    return size + np.log1p(np.exp(-2.0 * size)) - np.log(2)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(log_cosh)

# %% [markdown] name="practice_energy"
# ### 2. `tanh_energy`: the direct road *(5 minutes)*
#
# $$E(\xi) = \tfrac12\lVert\xi\rVert^2 - \frac1\beta\sum_\tau \ln\cosh(\beta\, y_\tau\cdot\xi)$$
#
# One number, in units of a score. `xi` has shape `(d,)`, `Y` has shape `(n, d)`.
#
# <details><summary>Only the examples with beta = 1 pass</summary>
# β stands in two places. In which units is the argument of cosh, and in which the result?
# </details>
# <details><summary>It is not 0 at the origin</summary>
# Which part of it is not 0 there?
# </details>


# %% nbgrader={"grade_id": "tanh_energy", "solution": true}
def tanh_energy(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the energy of the tanh kernel, in units of a score.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> round(float(tanh_energy(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0)), 4)
    -0.825
    """
    ### BEGIN SOLUTION
    return xi @ xi / 2 - log_cosh(beta * (Y @ xi)).sum() / beta
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(tanh_energy)

# %% [markdown] name="practice_step"
# ### 3. `tanh_step`: one hop *(5 minutes)*
#
# $$\xi^+ = \sum_\tau \tanh(\beta s_\tau)\; y_\tau$$
#
# The landing, shape `(d,)`. One weight a token, then one sum over tokens.
#
# <details><summary>My landing is inside the tokens</summary>
# Did you divide by something? Votes are added, not averaged.
# </details>
# <details><summary>It is right at beta = 1 only</summary>
# Step 2: how many βs are left in the landing, and where?
# </details>


# %% nbgrader={"grade_id": "tanh_step", "solution": true}
def tanh_step(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the landing of one hop of the tanh kernel, shape (d,).

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> tanh_step(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([1.9281, 0.    ])
    """
    ### BEGIN SOLUTION
    return np.tanh(beta * (Y @ xi)) @ Y
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(tanh_step)

# %% [markdown] name="promise_measured"
# #### Do the two belong together?
#
# Step 2 makes two promises. The way from ξ to the landing is minus the gradient of your energy: a
# judge of finite differences compares them. And no hop gains less than $\tfrac12\lVert g\rVert^2$.

# %% name="promise"
rng, apart, ratios = np.random.default_rng(1), [], []
for _ in range(500):
    n, d = rng.integers(1, 9), rng.integers(1, 6)
    xi, Y, beta = rng.normal(size=d), rng.normal(size=(n, d)), 10 ** rng.uniform(-1, 1)
    landing = tanh_step(xi, Y, beta)
    steps = 1e-5 * np.eye(d)
    slope = [tanh_energy(xi + h, Y, beta) - tanh_energy(xi - h, Y, beta) for h in steps]
    apart.append(np.abs(xi - np.array(slope) / 2e-5 - landing).max())
    gain = tanh_energy(xi, Y, beta) - tanh_energy(landing, Y, beta)
    ratios.append(gain / np.sum((xi - landing) ** 2) * 2)
print(f"the hop and minus the gradient differ by {max(apart):.0e} at most")
print(f"gain / promise: {min(ratios):.3f} at least, {np.median(ratios):.2f} in the middle")

# %% [markdown] name="given_text"
# #### Two helpers
#
# `sign_patterns(n)` lists the $2^n$ choices of signs, all plus first, all minus last; from one row
# to the next the *last* token changes sign first. `rest(xi, Y, beta)` repeats your hop until the
# place no longer changes. Both refuse what they cannot do; the last of the four cells shows how.


# %% name="given"
def sign_patterns(n):
    """Return all choices of n signs, shape (2**n, n)."""
    if not 1 <= n <= 16:
        raise ValueError(f"sign_patterns lists 2**n rows, for n from 1 to 16; n is {n}")
    return 1.0 - 2.0 * np.indices((2,) * n).reshape(n, -1).T


# %% name="given_rest"
def rest(xi, Y, beta, most=20_000):
    """Hop with tanh_step until the place stays the same; return it, shape (d,)."""
    if np.ndim(Y) != 2 or len(Y) == 0:
        raise ValueError(f"Y needs at least one token, as a row; its shape is {np.shape(Y)}")
    if not 0 < beta < np.inf:
        raise ValueError(f"beta must be above 0 and finite; it is {beta}")
    for _ in range(most):
        start, xi = xi, tanh_step(xi, Y, beta)
        if np.linalg.norm(xi - start) < 1e-11:
            return xi
    raise RuntimeError(f"still moving after {most} hops: beta may be at a split")


# %% name="patterns"
print(sign_patterns(2))
print("from (0.1, 0.3) to", rest(np.array([0.1, 0.3]), np.array([[1, 0], [0.5, 1]]), 4.0).round(3))

# %% name="refusals"
for call in (
    lambda: sign_patterns(17),
    lambda: rest(np.zeros(2), np.ones((0, 2)), 1.0),
    lambda: rest(np.zeros(2), np.ones((3, 2)), 0.0),
):
    try:
        call()
    except ValueError as error:
        print("refused:", error)

# %% [markdown] name="practice_centers"
# ### 4. `mode_centers`: all corners *(6 minutes)*
#
# $$z_\varepsilon = \sum_\tau \varepsilon_\tau\, y_\tau$$
#
# One corner a row, shape `(2**n, d)`, in the order of `sign_patterns`. Two patterns may give the
# same place; keep both rows. No loop is needed.
#
# <details><summary>How do I get all sums at once?</summary>
# A row of signs times Y is one corner. What is a whole table of signs, times Y?
# </details>


# %% nbgrader={"grade_id": "mode_centers", "solution": true}
def mode_centers(Y: np.ndarray) -> np.ndarray:
    """Return every signed sum of the tokens, shape (2**n, d), in the order of sign_patterns.

    Y: tokens as rows, shape (n, d), at most 16 of them.

    >>> mode_centers(np.array([[1.0, 0.0], [0.5, 1.0]]))
    array([[ 1.5,  1. ],
           [ 0.5, -1. ],
           [-0.5,  1. ],
           [-1.5, -1. ]])
    """
    ### BEGIN SOLUTION
    return sign_patterns(len(Y)) @ Y
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(mode_centers)

# %% [markdown] name="practice_gmm"
# ### 5. `tanh_energy_gmm`: the road over the corners *(10 minutes)*
#
# $$E(\xi) = -\frac1\beta \ln \sum_\varepsilon e^{\beta\lVert z_\varepsilon\rVert^2/2
# \,-\, \beta\lVert\xi-z_\varepsilon\rVert^2/2} \;+\; \frac{n\ln 2}{\beta}$$
#
# The mixture of lesson 2, on your corners, and the constant. Form the whole exponent of every
# component first, shape `(2**n,)`, then one `logsumexp`. The result is the number that
# `tanh_energy` gives.
#
# <details><summary>It differs from tanh_energy, by the same amount at every query</summary>
# Compare at the origin, where the energy is 0. How many halves are there, and what does the β in
# front of the logarithm do to them?
# </details>
# <details><summary>It differs by more, far from the origin</summary>
# Longer corners have larger weights. Whose length counts: the corner's or the token's?
# </details>


# %% nbgrader={"grade_id": "tanh_energy_gmm", "solution": true}
def tanh_energy_gmm(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the energy of the tanh kernel by way of its mixture, in units of a score.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> xi, Y = np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]])
    >>> round(float(tanh_energy_gmm(xi, Y, 1.0)), 4)
    -0.825
    """
    ### BEGIN SOLUTION
    corners = mode_centers(Y)
    exponents = (corners**2).sum(axis=1) - ((xi - corners) ** 2).sum(axis=1)
    return len(Y) * np.log(2) / beta - logsumexp(beta * exponents / 2) / beta
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(tanh_energy_gmm)

# %% [markdown] name="race_text"
# #### What the corners cost
#
# The same number by two roads: n terms, or $2^n$ bumps. Time them on your machine. From the
# picture: by what does the time of the bumps grow with two more tokens? How long would 32 tokens
# take? Work it out, then compare with the printed line. *(4 minutes)*


# %% name="race"
def seconds(function, *given):
    """Return how long a call takes: the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        function(*given)
        times.append(time.perf_counter() - start)
    return min(times)


def race(counts):
    """Return the seconds of both roads for each number of tokens, and how far they differ."""
    rng = np.random.default_rng(2)
    calls = [(rng.normal(size=2), rng.normal(size=(n, 2)), 1.0) for n in counts]
    differ = max(abs(tanh_energy(*call) - tanh_energy_gmm(*call)) for call in calls)
    roads = (tanh_energy, tanh_energy_gmm)
    return *([seconds(road, *call) for call in calls] for road in roads), differ


# %% name="race_picture"
counts = np.arange(2, 17, 2)
direct, bumps, differ = race(counts)
print(f"The two roads differ by {differ:.0e} at most. With 16 tokens the bumps take")
print(f"{bumps[-1] / direct[-1]:.0f} times as long; 32 tokens: {bumps[-1] * 2**16 / 3600:.1f} h.")
growth = " ".join(f"{ratio:.1f}" for ratio in np.divide(bumps[1:], bumps[:-1]))
print(f"With every two more tokens there are 4 times as many bumps; their time grows by {growth}")
print("(other work on your machine disturbs single numbers)")
with draw.figure(
    words="Seconds for one energy. The direct road hardly notices how many tokens there are. The "
    "road over the corners takes longer with every two more: towards four times as long, for many "
    "tokens on a machine with nothing else to do.",
    size=(7, 4.2),
) as (picture, (ax,)):
    draw.draw_path(ax, np.column_stack([counts, direct]), "landing", label="direct", dots=True)
    draw.draw_path(ax, np.column_stack([counts, bumps]), "other", label="bumps", dots=True)
    ax.set(xlabel="tokens n", ylabel="seconds", yscale="log")
    ax.legend()
picture

# %% [markdown] name="practice_stable"
# ### 6. `stable_modes`: which corners hold? *(12 minutes)*
#
# $$\varepsilon_\tau\,(y_\tau\cdot z_\varepsilon) > 0 \quad\text{for every token } \tau$$
#
# A mask: one True or False a corner, shape `(2**n,)`, in the order of `mode_centers`. A score of
# exactly 0 holds no sign. Think in tables: signs have shape `(2**n, n)`. Which table of this shape
# do you want to compare them with?
#
# <details><summary>A table of scores</summary>
# One row a corner, one column a token: the scores that all corners get from all tokens. It is a
# product of two arrays that you have.
# </details>
# <details><summary>I get True everywhere</summary>
# By hand, the tokens (1, 0) and (1.2, 0.3) gave a corner that does not hold. Print your table for
# them.
# </details>
# <details><summary>Almost none of mine are stable</summary>
# The corner contains the token itself, with its sign. Is its own support counted?
# </details>


# %% nbgrader={"grade_id": "stable_modes", "solution": true}
def stable_modes(Y: np.ndarray) -> np.ndarray:
    """Return which corners are valleys when beta grows without bound, shape (2**n,), True or False.

    Y: tokens as rows, shape (n, d), at most 16 of them.

    >>> stable_modes(np.array([[1.0, 0.0], [1.2, 0.3]]))
    array([ True, False, False,  True])
    """
    ### BEGIN SOLUTION
    votes = mode_centers(Y) @ Y.T
    return (sign_patterns(len(Y)) * votes > 0).all(axis=1)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(stable_modes)

# %% [markdown] name="mask_text"
# #### Does the mask tell the truth?
#
# It was written from a condition. Your hop knows no condition. From every corner of 20 random sets
# of tokens, hop at β = 1000: does the corner stay where it is? Corners that a token gives a score
# near 0 are left out: there, 1000 is not large enough to decide.

# %% name="mask_measured"
rng, agree, left_out = np.random.default_rng(3), [], 0
for _ in range(20):
    Y = rng.normal(size=(5, 2))
    for corner, stable in zip(mode_centers(Y), stable_modes(Y), strict=True):
        if np.abs(Y @ corner).min() < 0.02:
            left_out += 1
        else:
            stays = np.linalg.norm(tanh_step(corner, Y, 1000.0) - corner) < 1e-6
            agree.append(stays == stable)
print(f"mask and hop agree at {sum(agree)} of {len(agree)} corners; {left_out} left out")

# %% [markdown] name="see_it"
# ## See it
#
# Two pictures, drawn by *your* functions. *Softmax kernel* shows, for comparison, the same tokens
# under softmax; hollow triangles are its valleys. In *Tanh kernel* tokens are arrows, corners are
# circles, **filled where stable and hollow where not**, and green stars are the valleys at the
# present β. *How many valleys (tanh)* counts them at every β, with a mark at $1/\lambda_{\max}$.
# Before you move a control, write down what you expect.
#
# ### Two tokens *(8 minutes)*
#
# - **angle of y₂**: turn $y_2$ towards $y_1$. Which two corners become hollow? Read what the
#   sentence says about $y_1\cdot y_2$ just before and just after. What is left of the parallelogram
#   at 0° and at 180°?
# - **β**: back at 63°, go down from the right end. At which β do four valleys become two, and two
#   become one? Which of the two steps is at the mark?
# - **query**: move it about. Does the softmax hop ever leave the line between the tokens? Find a
#   query from which the tanh hop lands farther out than both tokens.

# %% name="explore"
explore.parallelogram(tanh_energy, tanh_step, mode_centers, stable_modes)

# %% [markdown] name="see_zonogon"
# ### More tokens *(6 minutes)*
#
# - **n**: go from 2 to 6 and write three numbers each time: corners, filled corners, the bound 2n.
#   Which new token adds filled corners, and which one costs some?
# - **β**: with 6 tokens, a filled corner has no star as yet. At which β does the last one get its
#   valley? And where is the first step, seen from the mark?
# - **tokens**: back to 3 tokens. Move $y_1$, by mouse or arrow keys, to about (2, −2) in *Softmax
#   kernel*. How many corners stay filled, and why?
#
# <details><summary>Why?</summary>
# Two. Every score contains the long token. Where it outweighs all the others together, its sign
# decides theirs: one pattern and its opposite are left, for any number of tokens.
# </details>

# %% name="explore_zonogon"
explore.zonogon(tanh_energy, tanh_step, mode_centers, stable_modes)

# %% [markdown] name="claim"
# ## Check the claim
#
# > *"Put a tanh in place of the softmax, and the energy is a Gaussian mixture with $2^n$ modes."*
#
# (A **mode** is a peak of the density, so a valley of the energy.) Count both, the components and
# the valleys. *(10 minutes)*
#
# - `components`: how many corners do ten tokens have? Let your `mode_centers` count.
# - `valleys`: a list of 100 counts. Each time draw ten tokens in the plane with `rng.normal`, and
#   count the stable corners.
# - `orthogonal`: the number of stable corners of the four tokens `np.eye(4)`.
#
# Then write your verdict. $2^n$ components make $2^n$ valleys: `"always"`, `"sometimes"` or
# `"never"`?

# %% nbgrader={"grade_id": "claim_measurement", "solution": true}
rng = np.random.default_rng(0)
components, valleys, orthogonal = None, [], None  # count them
verdict = ""  # "always", "sometimes" or "never"
### BEGIN SOLUTION
components = len(mode_centers(rng.normal(size=(10, 2))))
valleys = [int(stable_modes(rng.normal(size=(10, 2))).sum()) for _ in range(100)]
orthogonal = int(stable_modes(np.eye(4)).sum())
verdict = "sometimes"
### END SOLUTION

# %% name="claim_check"
if components is None or len(valleys) < 100 or orthogonal is None:
    print("Count `components`, 100 times `valleys`, and `orthogonal` first.")
else:
    all_of_them = [max(valleys) == components, orthogonal == 2**4]
    measured = "always" if all(all_of_them) else "sometimes" if any(all_of_them) else "never"
    print(f"ten random tokens: {components} components; {np.mean(valleys):.2f} valleys on average,")
    over = sum(count > 20 for count in valleys)
    print(f"{max(valleys)} at most; the bound 2n is 20:", f"✗ {over} are above it" if over else "✓")
    print(f"four orthogonal tokens: {orthogonal} valleys of {2**4} components")
    sound = not over and components == 2**10 and orthogonal == stable_modes(np.eye(4)).sum()
    right = "✓" if sound and verdict.strip().lower() == measured else "✗"
    print(f"by your counts: {measured}. Your verdict: {verdict or 'not written yet'} {right}")
    if not sound:
        print("A count is not right: take the corners that stable_modes calls True.")

# %% [markdown] name="claim_settled"
# <details><summary>What is true</summary>
#
# Components: $2^n$, always. Valleys: all $2^n$ of them only if no token gets in the way of another,
# as when they are orthogonal. That takes as many dimensions as tokens. In the plane at most $2n$
# corners are stable, and below $1/\lambda_{\max}$ the origin is the only valley. The claim says
# "modes" and means components: the mistake of lesson 2 once more, and $2^n$ makes it large.
#
# </details>

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Scroll so that the theory is out of sight. Answer in your own words, in the cell below, then open
# the answers. *(5 minutes)*
#
# 1. Where does the constant $n\ln 2/\beta$ come from?
# 2. When is a corner $z_\varepsilon$ a valley?
# 3. What is $E(0)$, and above which β is the origin no valley any more?

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. Each cosh has a factor $\tfrac12$; n of them, under a logarithm and over β. It moves no valley.
#    Constants of this kind stand in the energies of memories, too.
# 2. For β without bound: when every token's score with it has the sign that the token has in it.
#    The same condition, with other weights, says which patterns a memory can keep.
# 3. $E(0) = 0$. Above $1/\lambda_{\max}$. Lesson 6 makes this kernel linear; there the same mark
#    divides a bowl from landscapes without a floor.
#
# </details>
#
# And your predictions? The next cells measure all five with your functions.


# %% name="measure"
def mean_of_stable(count=100):
    """Return the mean number of stable corners of ten random tokens in the plane."""
    rng = np.random.default_rng(0)
    return np.mean([stable_modes(rng.normal(size=(10, 2))).sum() for _ in range(count)])


def ends_below_the_mark():
    """Count the places where hops from all corners come to rest, just below 1/λ_max."""
    Y = np.random.default_rng(4).normal(size=(5, 2))
    beta = 0.99 / np.linalg.eigvalsh(Y.T @ Y)[-1]
    ends = [rest(corner, Y, beta) for corner in mode_centers(Y)]
    return len(np.unique(np.round(ends, 4) + 0.0, axis=0))


# %% name="measure_growth"
def growth_of_bumps():
    """Return how many times as many corners 16 tokens have as 8."""
    few, many = (np.random.default_rng(5).normal(size=(n, 2)) for n in (8, 16))
    return len(mode_centers(many)) / len(mode_centers(few))


# %% name="reveal"
long_and_short = np.array([[1.0, 0.0], [1.2, 0.3]])
reveal(
    prediction,
    {
        "q1": lambda: pick(mean_of_stable(), a=2, b=6.3, c=20, d=1024),
        "q2": lambda: pick(stable_modes(np.eye(4)).sum(), a=2, b=4, c=8, d=16),
        "q3": lambda: pick(stable_modes(long_and_short).sum(), a=1, b=2, c=3, d=4),
        "q4": lambda: pick(ends_below_the_mark(), a=1, b=2, c=5, d=32),
        "q5": lambda: pick(growth_of_bumps(), a=2, b=16, c=256, d=65536),
    },
)  # fmt: skip

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: a census of the corners *(30 minutes)*
#
# Write `corner_census(Y, beta)`. It returns two whole numbers: how many *different places* the
# $2^n$ corners are, and how many *valleys* the energy has at this β. Start a walk of hops at every
# corner. Then think about
#
# - *what is the same*: equal tokens make equal corners, and two walks may end in one valley;
# - *what is a valley*: a walk can come to rest on a saddle. Use the curvature of step 5;
# - *what it costs*: twelve tokens should take less than a second. You can hop with all corners at
#   once: a table of places, one a row, in place of `xi`. The check allows five seconds a call.
#
# Then measure and report.
#
# 1. For 20 random sets of six tokens at β = 1000: does `stable_modes` say which corners stay where they
#    are? Leave out ties (a score near 0) and count them.
# 2. Break the mask on purpose: subtract a token's own support, $\lVert y_\tau\rVert^2$, from the
#    left side of the condition. Does your measurement find out?
# 3. For $d = 2$ and 3 and n up to 10: mean and largest number of stable corners, beside the bound
#    $2\sum_{i<d}\binom{n-1}{i}$. And one layout of your own from hot to cold.
#
# | read by a person | points |
# |---|---|
# | measurement: mask and settled outcome agree for 20 random Y at β = 1000, ties counted | 1 |
# | measurement: the broken mask is found out, with numbers | 1 |
# | measurement: the bound is tabulated with the counts, and never exceeded | 1 |
# | report: twelve tokens in less than a second, with the time shown | 1 |
# | report: components, places and valleys are told apart, with one layout from hot to cold | 2 |


# %% nbgrader={"grade_id": "corner_census", "solution": true}
def corner_census(Y: np.ndarray, beta: float) -> tuple[int, int]:
    """Return how many different places the corners are, and how many valleys there are at beta.

    Y: tokens as rows, shape (n, d), at most 16 of them.  beta: inverse temperature, above 0.

    >>> corner_census(np.ones((5, 1)), 2.0)
    (6, 2)
    """
    ### BEGIN SOLUTION
    x = different(mode_centers(Y), 9)
    places = len(x)
    for _ in range(20_000):
        landings = np.tanh(beta * x @ Y.T) @ Y
        still = np.abs(landings - x).max() < 1e-11
        x = different(landings, 12)
        if still:
            break
    kept = different([end for end in x if least_curvature(end, Y, beta) > 1e-6], 5)
    return places, len(kept)


def different(points, digits):
    """Return the points that differ after rounding."""
    return np.unique(np.round(points, digits) + 0.0, axis=0)


def least_curvature(xi, Y, beta):
    """Return the lowest eigenvalue of the Hessian of step 5."""
    slopes = 1 - np.tanh(beta * (Y @ xi)) ** 2
    return np.linalg.eigvalsh(np.eye(len(xi)) - beta * (Y.T * slopes) @ Y)[0]
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(corner_census)

# %% nbgrader={"grade_id": "project_sweep", "solution": true}
# Your measurements 1 and 2: the mask, the broken mask, the ties.
### BEGIN SOLUTION
rng, wrong, broken_wrong, stable, ties = np.random.default_rng(6), 0, 0, 0, 0
for _ in range(20):
    Y = rng.normal(size=(6, 2))
    scores = mode_centers(Y) @ Y.T
    broken = (sign_patterns(6) * scores - (Y**2).sum(axis=1) > 0).all(axis=1)
    sure = np.abs(scores).min(axis=1) > 0.02
    stays = [np.allclose(rest(z, Y, 1000.0), z, atol=1e-6) for z in mode_centers(Y)[sure]]
    wrong += (stays != stable_modes(Y)[sure]).sum()
    broken_wrong += (stays != broken[sure]).sum()
    stable, ties = stable + sum(stays), ties + (~sure).sum()
print(f"{20 * 64 - ties} corners, {ties} near ties left out; {stable} corners stay where they are")
print(f"the mask is wrong at {wrong} corners, the broken mask at {broken_wrong}")
### END SOLUTION

# %% nbgrader={"grade_id": "project_table", "solution": true}
# Your measurement 3: counts beside the bound, one layout from hot to cold, and the time.
### BEGIN SOLUTION
rng = np.random.default_rng(7)
for d, n in ((2, 4), (2, 7), (2, 10), (3, 4), (3, 7), (3, 10)):
    found = [stable_modes(rng.normal(size=(n, d))).sum() for _ in range(100)]
    bound = 2 * sum(math.comb(n - 1, i) for i in range(d))
    print(f"d = {d}, n = {n:2}: {np.mean(found):5.2f} stable, {max(found):2} at most of {bound}")
Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]])
print("places and valleys:", {beta: corner_census(Y, beta) for beta in (0.3, 0.4, 1, 2, 8)})
print(f"twelve tokens: {seconds(corner_census, rng.normal(size=(12, 2)), 1000.0):.2f} s")
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# The mask is right at every corner that is no tie. Without its own support a token gives in too
# easily: the broken mask misses about half of the corners that stay, and the measurement
# finds it out. The largest counts stay below the bound; only for few tokens do they reach it. Three
# tokens have 8 components in 8 places. They have one valley at β = 0.3, below 1/λ_max = 0.345, then
# 2, then 4, and never 8: at four corners one token's score contradicts its own sign. Twelve tokens
# take a fraction of a second, because all corners hop at once and equal places are merged on the
# way.
# ### END SOLUTION

# %% [markdown] name="limits"
# ## What was not shown
#
# - Language models use the softmax. The tanh kernel is here because it is a small change that
#   makes a different landscape, and because its energy is that of an older kind of memory.
# - How deep the valleys are. Opposite corners are equally deep; the longest one is the deepest when
#   β is large.
# - Valleys between hot and cold. The mask says what happens when β grows without bound. At a given
#   β you have to search, and a search that starts at corners only may miss one.
# - What is left when tanh is replaced by its first term: the linear kernel, in lesson 6.
#
# **Read on.** J. J. Hopfield, *Neurons with graded response have collective computational
# properties like those of two-state neurons*, PNAS 81 (1984), 3088–3092: votes by tanh, and their
# energy. D. Krotov and J. J. Hopfield, *Dense associative memory for pattern recognition*, NeurIPS
# 2016 (arXiv 1606.01164): energies that are sums of a function of the scores. T. M. Cover,
# *Geometrical and statistical properties of systems of linear inequalities with applications in
# pattern recognition*, IEEE Transactions on Electronic Computers EC-14 (1965), 326–334: how many
# sign patterns there can be. G. M. Ziegler, *Lectures on polytopes* (Springer, 1995), lecture 7:
# zonotopes.
