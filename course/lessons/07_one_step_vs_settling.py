# %% [markdown] name="challenge"
# # 7 · One step versus settling
#
# An attention head makes one hop and is done. A memory, as physics builds it, hops until nothing
# moves any more: it **settles**. You can read that attention "falls into a minimum" or "finds the
# nearest pattern". It makes one step. **How far is the place where it lands from the place where it
# would settle?** Nobody has to argue about that: you will measure it.
#
# When you are done you can
#
# - settle, stop at the right moment, and say how wrong you still are,
# - tell a valley from a saddle where a walk has come to rest,
# - predict how many hops settling takes, and where it takes for ever,
# - say for which β one hop is nearly settled, and for which it is not.
#
# **Time** about two hours. **You need** the hop and its promise (lesson 3), the second derivatives of
# lse (lesson 1), and the test for saddles (lesson 6). Energy and hop are given in SciPy's words.

# %% name="imports"
import warnings

import numpy as np
from scipy.optimize import approx_fprime, brentq
from scipy.special import logsumexp, softmax

from hopping import check, check_answers, commit, draw, explore, pick, reveal
from hopping.waiting import counted

# %% [markdown] name="warm_up"
# ## Warm up
#
# From lessons 1, 2 and 6. Remember
# $\mathrm{lse}(\xi) = \tfrac1\beta \ln \sum_\tau e^{\beta\, y_\tau\cdot\xi}$ and
# $E(\xi) = \tfrac12\|\xi\|^2 - \mathrm{lse}(\xi)$. Write a letter for each, then run the cells.
# *(4 minutes)*
#
# **w1.** C is the covariance of the tokens under the softmax weights. The matrix of second derivatives
# of lse is\
# (a) C · (b) β C · (c) β² C · (d) C / β.
#
# **w2.** Two centres on a line, at +1 and −1. One valley splits into two at β =\
# (a) 0.25 · (b) 0.5 · (c) 1 · (d) 4.
#
# **w3.** Every hop lowers the energy of its kernel. With which kernel can the hops become longer and
# longer all the same?\
# (a) softmax · (b) tanh · (c) linear · (d) none of them.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "b", "w2": "c", "w3": "c"}
### END SOLUTION

# %% name="warm_up_measured"
A_xi = np.array([0.75, -0.5])
A_Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]])
pair = np.array([[1.0], [-1.0]])


def which_matrix(beta=4.0, h=1e-3):
    """Compare a second difference of lse along the first axis with the covariance there."""
    scores = beta * (A_xi + h * np.array([[1, 0], [0, 0], [-1, 0]])) @ A_Y.T
    second = logsumexp(scores, axis=1) @ [1, -2, 1] / beta / h**2
    C = np.cov(A_Y[:, 0], aweights=softmax(beta * A_Y @ A_xi), ddof=0)
    names = {"C": 1, "β C": beta, "β² C": beta**2, "C / β": 1 / beta}
    return min(names, key=lambda name: abs(names[name] - second / C))


# %% name="warm_up_walks"
def rise_beside_the_middle(beta, h=1e-3):
    """Return how much higher the energy of the pair is at h than at 0."""
    return h**2 / 2 - np.log(np.cosh(beta * h)) / beta


def longest_after_many_hops(hops=300):
    """Return the kernel that still makes long hops after many."""
    weights, lengths = dict(softmax=softmax, tanh=np.tanh, linear=lambda u: u), {}
    for kernel, of in weights.items():
        at = A_xi
        for _ in range(hops):
            start, at = at, of(A_Y @ at) @ A_Y
        lengths[kernel] = np.abs(at - start).max()
    return max(lengths, key=lengths.get) if max(lengths.values()) > 1 else "none of them"


# %% name="warm_up_check"
check_answers(
    answers,
    {
        "w1": lambda: pick(which_matrix(), a="C", b="β C", c="β² C", d="C / β"),
        "w2": lambda: pick(brentq(rise_beside_the_middle, 0.1, 10), a=0.25, b=0.5, c=1, d=4),
        "w3": lambda: pick(longest_after_many_hops(),
                           a="softmax", b="tanh", c="linear", d="none of them"),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# The rows of $Y$ are the centres. In this lesson they play the part of things that were stored, and we
# call them **patterns**. A hop leads from the query $\xi$ to its **landing** $a\,Y$. **Settling**
# repeats the hop until it no longer moves; where that happens is the **settled point**. The **gap** is
# the distance from the landing to the settled point, divided by the length of the landing.
# Commit to an answer for each question. A guess counts. *(5 minutes)*
#
# **q1.** Four patterns (1, 0), (0, 1), (−1, 0.25), (0.25, −1). The query (0.0625, 0.125) is near none
# of them, and β = 16. The gap is\
# (a) 1 % · (b) 10 % · (c) 30 % · (d) 54 %.
#
# **q2.** Four random patterns of length 1 in 16 dimensions, and random queries of length 1. The mean
# gap is largest at β =\
# (a) 1 · (b) 4 · (c) 16 · (d) 64.
#
# **q3.** The same patterns and β = 1, but now each query stands exactly on a pattern. Compared with
# random queries, the mean gap is multiplied by about\
# (a) 0 · (b) 0.5 · (c) 1 · (d) 2.
#
# **q4.** Two patterns on a line, at 1 and −1, and β = 1.01. You start at 0.5. How many hops does it
# take until one is shorter than 1e-10? About\
# (a) 15 · (b) 80 · (c) 800 · (d) 8000.
#
# **q5.** Eight random patterns and a random query in the plane (normally distributed), and β = 8.
# You settle, and take the pattern nearest to the place where you end. How often is it also the one
# nearest to the query?\
# (a) 95 % · (b) 60 % · (c) 25 % · (d) 5 %.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "d", "q2": "b", "q3": "d", "q4": "c", "q5": "c"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, in five small steps
#
# *(10 minutes, with the example by hand)*
#
# **Step 1: where settling can end.** A hop leads from $\xi$ to $\xi - g$, with $g = \nabla E(\xi)$, and
# lowers $E$ by at least $\tfrac12\|g\|^2$ (lesson 3). $E$ has a floor, because the bowl grows faster than
# lse. So the hops must become short, and a walk can only come to rest where $g = 0$:
#
# $$\xi = a\,Y.$$
#
# Such a place is called a **fixed point**: the hop leaves it where it is. Every valley is one. So is
# every saddle and every peak.
#
# **Step 2: how fast.** Near a fixed point, look at the error: the way from the fixed point to where you
# are. One hop multiplies it by the derivative of the hop. The hop is $\nabla\mathrm{lse}$, so its
# derivative is the matrix of w1, $J = \beta\,\mathrm{Cov}_a(y)$. The slowest direction decides:
#
# $$\rho = \lambda_{\max}(J), \qquad \text{error after a hop} \;\approx\; \rho \cdot \text{error before}.$$
#
# Call $\rho$ the **rate**. The curvatures of $E$ are those of the bowl minus those of lse, $I - J$, and
# the lowest is $1 - \rho$. So **a fixed point is a valley when its rate is below 1.** Above 1 it is a
# saddle or a peak, and errors grow.
#
# **Step 3: when to stop.** Say the last hop had length δ. The next ones have about $\rho\delta$,
# $\rho^2\delta$, … Add them up:
#
# $$\text{error that is left} \;\lesssim\; \frac{\rho}{1-\rho}\;\delta .$$
#
# (About: it is exact for a straight line, so near the valley.) So watch how far a hop moves. Do not watch
# the energy: it is flat at the bottom. An error $e$ raises
# it by only $\tfrac12(1-\rho)\,e^2$ along the slowest direction, so a tiny change of $E$ leaves an error
# the size of its square root.
#
# **Step 4: where it takes for ever.** Where a valley splits in two, the ground is flat, $\rho = 1$, and
# hops no longer shrink by a factor. This is called **critical slowing**.
#
# **Step 5: the gap.** Attention answers with the landing. Settling would answer with the settled point.
#
# $$\text{gap} = \frac{\|\text{settled} - \text{landing}\|}{\|\text{landing}\|}$$
#
# It is exactly 0 when the landing is itself a fixed point. Two ends are easy. When β goes to 0, all
# weights become equal: one hop is at the mean, and stays there. When β grows without bound, one hop is
# on the pattern with the highest score, and usually stays there. What happens in between is today's
# question. (A ratio has no unit, but it has an origin: where landings are short, gaps are large.)

# %% [markdown] name="by_hand"
# ### By hand
#
# Two patterns, $+1$ and $-1$, on a line. The weights are $e^{\beta x}$ and $e^{-\beta x}$ over their sum,
# so the hop is $x^+ = \tanh(\beta x)$. The variance of $\pm1$ with mean $x$ is $1 - x^2$, so at a fixed
# point the rate is $\rho = \beta\,(1 - x^2)$. Take β = 2 and the query ¼.
#
# - Landing: $\tanh(\tfrac12) = 0.4621$. The settled point solves $x = \tanh(2x)$: it is $0.9575$.
# - Gap: $(0.9575 - 0.4621) / 0.4621 = 1.072$. The landing was not even half of the way.
# - Rate at 0.9575: $2 \cdot (1 - 0.9168) = 0.166$. Each hop keeps a sixth of the error.
# - Rate at 0: 2. It is a fixed point as well, but a peak. Only an exact start at 0 stays there.
# - β = 1: $\tanh x \approx x - x^3/3$. A hop takes away $x^3/3$, less and less, and after $k$ hops
#   $x \approx \sqrt{3/(2k)}$. A million hops leave an error of a thousandth.
#
# The next cells give you energy and hop, and draw walks as stairs between $\tanh(\beta x)$ and the
# diagonal. Where the two cross is a fixed point.


# %% name="given"
def energy(xi, Y, beta):
    """The landscape: a bowl, minus the log-sum-exp of the scores."""
    return 0.5 * xi @ xi - logsumexp(Y @ xi * beta) / beta


def hop(xi, Y, beta):
    """Where one hop lands, shape (d,): the softmax average of the patterns."""
    return softmax(beta * Y @ xi) @ Y


def walk(step, x, hops):
    """Return the start and the places after each of so many steps, shape (hops + 1, d)."""
    places = [x]
    for _ in range(hops):
        places.append(step(places[-1]))
    return np.array(places)


# %% name="first_picture"
at = np.linspace(0, 1.1, 111)
with draw.figure(
    ncols=2,
    words="Left, β = 2: after a few stairs the walk is where the curve crosses the diagonal. Right, "
    "β = 1.01: curve and diagonal nearly touch, and 60 stairs are not enough.",
) as (picture, axes):
    for ax, beta, start in zip(axes, (2.0, 1.01), (0.25, 0.5), strict=True):
        places = walk(lambda x, b=beta: hop(x, pair, b), np.array([start]), 60)[:, 0]
        stairs = np.repeat(places, 2)
        draw.draw_path(ax, np.column_stack([at, np.tanh(beta * at)]), "token", label="tanh(βx)")
        draw.draw_path(ax, np.column_stack([at, at]), "ink", label="diagonal")
        draw.draw_path(ax, np.column_stack([stairs[:-1], stairs[1:]]), "landing", label="hops")
        draw.draw_points(ax, [start, start], "query", label="query")
        ax.set(title=f"β = {beta}", xlabel="x", ylabel="after a hop", aspect="equal")
        ax.legend()
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Five functions. After each one, `check(...)` tells you at once what is wrong and what to think
# about. Arrays that you are given must not be changed; what you return must be new. `hop` is there
# for you to call. Settled points are compared to about eight digits, gaps to six.

# %% [markdown] name="practice_settle"
# ### 1. `settle`: hop until it no longer moves *(10 minutes)*
#
# Repeat $x \leftarrow a\,Y$ until a hop moves by at most `tol`: $\|x_{\text{new}} - x\| \le$ `tol`. Stop
# after `max_steps` hops in any case. Return three things, as a tuple:
#
# - the newest place, shape `(d,)`,
# - how many hops you made, the last one included,
# - `True` if the last hop was short enough; `False` if the limit ended the walk.
#
# The flag is there because **a walk that did not settle must never look like one that did.**
#
# <details><summary>Which place do I return?</summary>
# The newest: you have paid for that hop.
# </details>
# <details><summary>It says that my input changed</summary>
# A name on the left of <code>+=</code> or <code>[:] =</code> writes into the caller's array.
# </details>
# <details><summary>All passes but the slow case</summary>
# Did you fix the number of hops, or the tolerance? Both are arguments.
# </details>


# %% nbgrader={"grade_id": "settle", "solution": true}
def settle(
    xi: np.ndarray, Y: np.ndarray, beta: float, tol: float = 1e-10, max_steps: int = 10_000
) -> tuple[np.ndarray, int, bool]:
    """Repeat the hop until it moves by at most tol; return (place, hops, converged).

    xi: query, shape (d,).  Y: patterns as rows, shape (n, d).  beta: inverse temperature, above 0.
    tol: length of a hop that counts as none.  max_steps: most hops.

    >>> x, hops, converged = settle(np.array([0.25]), np.array([[1.0], [-1.0]]), 2.0)
    >>> x.round(4), converged
    (array([0.9575]), True)
    >>> settle(np.array([0.25]), np.array([[1.0], [-1.0]]), 2.0, max_steps=3)[1:]
    (3, False)
    """
    ### BEGIN SOLUTION
    x = np.array(xi, dtype=float)
    for hops in range(1, max_steps + 1):
        before, x = x, hop(x, Y, beta)
        if np.linalg.norm(x - before) <= tol:
            return x, hops, True
    return x, max_steps, False
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(settle)

# %% [markdown] name="practice_rate"
# ### 2. `local_rate`: how fast, and is it a valley? *(5 minutes)*
#
# $$\rho = \lambda_{\max}\Big(\beta \sum_\tau a_\tau\,(y_\tau - m)^\top (y_\tau - m)\Big),
# \qquad m = a\,Y$$
#
# One number: the largest eigenvalue of the matrix of w1 at `xi`. A pattern is a row, so each term is a
# `(d, d)` table. `np.linalg.eigvalsh` gives eigenvalues in ascending order.
#
# <details><summary>I get 0.83 where 0.17 is expected</summary>
# One is the rate of the hop, the other is the curvature of E. What do they add up to?
# </details>
# <details><summary>It fails where there is one pattern, or one dimension</summary>
# Print the shape of your matrix. It has to be (d, d), for d = 1 as well.
# </details>


# %% nbgrader={"grade_id": "local_rate", "solution": true}
def local_rate(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the largest eigenvalue of the hop's derivative at xi; below 1 errors shrink.

    xi: place, shape (d,).  Y: patterns as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> float(local_rate(np.array([0.0]), np.array([[1.0], [-1.0]]), 2.0))
    2.0
    """
    ### BEGIN SOLUTION
    a = softmax(beta * Y @ xi)
    apart = Y - a @ Y
    return np.linalg.eigvalsh(beta * apart.T @ (a[:, None] * apart))[-1]
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(local_rate)

# %% [markdown] name="stopping_text"
# #### When to stop *(4 minutes)*
#
# Two ways to stop, with the same threshold of 1e-10: when a hop moves by less, or when it lowers $E$ by
# less. The next cell walks from 0.5 between the patterns 1 and −1, at β = 1.01. The right place is known
# from another road (halving an interval). By how many digits do the two differ? Does the bound of step 3
# hold?

# %% name="stopping"
start = np.array([0.5])
right = brentq(lambda x: np.tanh(1.01 * x) - x, 0.1, 1.0, xtol=1e-14)
places = walk(lambda x: hop(x, pair, 1.01), start, 1000)
moves = np.abs(np.diff(places[:, 0]))
falls = -np.diff([energy(x, pair, 1.01) for x in places])
for name, change in (("moves", moves), ("lowers E", falls)):
    stop = int(np.argmax(change <= 1e-10)) + 1
    error = abs(places[stop, 0] - right)
    print(f"stop when a hop {name:8} by 1e-10: after {stop:3} hops, error {error:.1e}")
x, hops, converged = settle(start, pair, 1.01)
rate = local_rate(x, pair, 1.01)
print(f"your settle: {hops} hops, converged: {converged}, rate {rate:.4f}")
print(f"error {abs(x[0] - right):.2e}, bound of step 3 {rate / (1 - rate) * moves[hops - 1]:.2e}")

# %% [markdown] name="slowing_text"
# #### Critical slowing *(3 minutes)*
#
# The same two patterns, at 33 values of β around 1. How many hops does your `settle` need? In one of these
# landscapes it gives up. Is that reported?

# %% name="slowing"
betas = 2.0 ** np.linspace(-1, 1, 33)
runs = [settle(start, pair, beta) for beta in betas]
counts, stuck = [run[1] for run in runs], [not run[2] for run in runs]
for beta, (x, hops, converged) in zip(betas, runs, strict=True):
    if not converged:
        print(f"β = {beta:g}: not settled after {hops} hops. It is at {x[0]:.6f};", end=" ")
        print(f"by hand √(3/2k) = {np.sqrt(1.5 / hops):.6f}, and the valley is at 0")

# %% name="slowing_picture"
with draw.figure(
    words=f"Hops until one is shorter than 1e-10, over β. Far from 1 there are {counts[0]} or "
    f"{counts[-1]}. Towards 1 there are hundreds; the hollow star gave up.",
    size=(7, 4.2),
) as (picture, (ax,)):
    draw.draw_path(ax, np.column_stack([betas, counts]), "landing")
    draw.draw_points(ax, np.column_stack([betas, counts]), "landing", hollow=stuck)
    ax.set(xscale="log", yscale="log", xlabel="β", ylabel="hops")
    ax.set_xticks([0.5, 1, 2], ["0.5", "1", "2"])
    ax.minorticks_off()
picture

# %% [markdown] name="saddle_text"
# #### At rest, but where? *(2 minutes)*
#
# At β = 4 the valleys are near 1 and −1, and 0 is a peak. Three starts: at 0, beside it, and a little
# farther away. Which of the three ends would you call a valley? Which number tells you?

# %% name="saddle"
for begin in (0.0, 1e-12, 1e-3):
    x, hops, converged = settle(np.array([begin]), pair, 4.0)
    rate = local_rate(x, pair, 4.0)
    print(f"from {begin:5g}: {hops:2} hops to {x[0]:.3g}, converged: {converged}, rate {rate:.3f}")

# %% [markdown] name="saddle_answer"
# <details><summary>Which of the three</summary>
#
# Only the third: there the rate is far below 1. The second start moved by less than `tol`, so it counts
# as settled, on a peak, where the rate is 4.
#
# </details>

# %% [markdown] name="practice_count"
# ### 3. `count_minima`: how many valleys *(10 minutes)*
#
# Settle every start (a row of `starts`). Keep an end only if its walk converged **and** its rate is below
# 1 − 1e-6. Then two ends at most `merge` apart are one valley. Return how many different ones there are.
#
# <details><summary>I count too many</summary>
# Two walks into one valley end at places that differ in the tenth digit. And a place at rest is not
# always a valley: above, two of the three walks ended on the peak.
# </details>
# <details><summary>How do I tell whether an end is new?</summary>
# Keep a list of the valleys found so far. An end is new when it is far from all of them.
# </details>


# %% nbgrader={"grade_id": "count_minima", "solution": true}
def count_minima(Y: np.ndarray, beta: float, starts: np.ndarray, merge: float = 1e-4) -> int:
    """Return the number of different valleys that the starts lead to.

    Y: patterns as rows, shape (n, d).  beta: inverse temperature, above 0.  starts: shape (k, d).
    merge: ends at most this far apart are the same valley.

    >>> count_minima(np.array([[1.0], [-1.0]]), 2.0, np.array([[0.0], [0.5], [0.75], [-0.5]]))
    2
    """
    ### BEGIN SOLUTION
    valleys = []
    for start in starts:
        x, _, converged = settle(start, Y, beta)
        new = all(np.linalg.norm(x - valley) > merge for valley in valleys)
        if converged and new and local_rate(x, Y, beta) < 1 - 1e-6:
            valleys.append(x)
    return len(valleys)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(count_minima)

# %% [markdown] name="answers_text"
# #### How many different answers? *(2 minutes)*
#
# A hundred random queries among the four patterns of q1. How many different answers does one hop give,
# and how many does settling give? Which of the two still knows where the query was?

# %% name="answers_counted"
P4 = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.25], [0.25, -1.0]])
P4_xi = np.array([0.0625, 0.125])
queries = np.random.default_rng(1).normal(size=(100, 2))
for beta in (0.25, 1.0, 4.0, 16.0, 64.0):
    landings = np.array([hop(xi, P4, beta) for xi in queries])
    different = len(np.unique(landings.round(3), axis=0))
    valleys = count_minima(P4, beta, queries)
    print(f"β = {beta:5}: 100 queries, {different:3} different landings, {valleys} valleys")

# %% [markdown] name="practice_gap"
# ### 4. `one_step_gap`: how far from settled *(5 minutes)*
#
# $$\text{gap} = \frac{\|\text{settled} - \text{landing}\|}{\|\text{landing}\|}$$
#
# One number without a unit. Lengths are Euclidean. Two cases ask for care:
#
# - **Not settled.** Then you have no settled point. Never hide that: call
#   `warnings.warn("not settled")`, and go on with the newest place. The check cannot hear the warning;
#   the measurement below counts it.
# - **0 over 0.** From the query 0 between 1 and −1 the landing is 0, and stays there. The two answers
#   agree, so the gap is 0.
#
# <details><summary>It is right for some examples only</summary>
# Which of the two answers is attention's? Its length is the yardstick.
# </details>


# %% nbgrader={"grade_id": "one_step_gap", "solution": true}
def one_step_gap(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the distance from landing to settled point, over the length of the landing.

    xi: query, shape (d,).  Y: patterns as rows, shape (n, d).  beta: inverse temperature, above 0.
    Warns if it does not settle.

    >>> round(float(one_step_gap(np.array([0.25]), np.array([[1.0], [-1.0]]), 2.0)), 4)
    1.072
    """
    ### BEGIN SOLUTION
    landing = hop(xi, Y, beta)
    settled, hops, converged = settle(xi, Y, beta)
    if not converged:
        warnings.warn(f"not settled after {hops} hops", stacklevel=2)
    distance = np.linalg.norm(settled - landing)
    return distance / np.linalg.norm(landing) if distance > 0 else 0.0
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(one_step_gap)

# %% [markdown] name="practice_curve"
# ### 5. `gap_curve`: the mean gap over β *(5 minutes)*
#
# For each β in `betas`, the mean of the gaps of all queries in `Q` (one a row). Each gap is measured from
# the query itself, whatever β came before. Shape `(len(betas),)`.
#
# <details><summary>The first number is right, the others are not</summary>
# Did a query move on the way from one β to the next?
# </details>
# <details><summary>It returns a list</summary>
# <code>np.array</code> makes an array of it.
# </details>


# %% nbgrader={"grade_id": "gap_curve", "solution": true}
def gap_curve(Q: np.ndarray, Y: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """Return the mean gap of the queries at each beta, shape (len(betas),).

    Q: queries as rows, shape (k, d).  Y: patterns as rows, shape (n, d).  betas: shape (m,).

    >>> gap_curve(np.array([[0.25], [-0.5]]), np.array([[1.0], [-1.0]]), [0.5, 2.0]).round(4)
    array([1.    , 0.6646])
    """
    ### BEGIN SOLUTION
    return np.array([np.mean([one_step_gap(xi, Y, beta) for xi in Q]) for beta in betas])
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(gap_curve)

# %% [markdown] name="hump_text"
# #### The measurement *(5 minutes)*
#
# Now the question of this lesson, with your functions: 60 times four random patterns of length 1 in 16
# dimensions. Two kinds of queries: of length 1 in a random direction, and exactly on a pattern. It takes
# some seconds; a bar shows how far it is. Walks that did not settle are counted, by your warnings.


# %% name="hump_rows"
def unit(rng, count, length=1.0, d=16):
    """Return random rows of this length, shape (count, d)."""
    rows = rng.normal(size=(count, d))
    return length * rows / np.linalg.norm(rows, axis=1, keepdims=True)


# %% name="hump"
betas = np.array([1 / 8, 1 / 2, 1, 2, 4, 8, 16, 64, 256])
rng, random_query, on_a_pattern = np.random.default_rng(0), [], []
with warnings.catch_warnings(record=True) as unsettled:
    warnings.simplefilter("always")
    for _ in counted(range(60), "sets of patterns"):
        patterns = unit(rng, 4)
        random_query.append(gap_curve(unit(rng, 1), patterns, betas))
        on_a_pattern.append(gap_curve(patterns[:1], patterns, betas))
gaps = {"random query": random_query, "on a pattern": on_a_pattern}
print(f"{len(unsettled)} of {2 * 60 * len(betas)} walks did not settle")

# %% name="hump_table"
means = {name: np.mean(rows, axis=0) for name, rows in gaps.items()}
spreads = {name: np.std(rows, axis=0) / np.sqrt(60) for name, rows in gaps.items()}
print("     β   random query     on a pattern    random: gap > 0.5, < 0.01")
for k, beta in enumerate(betas):
    cells = "   ".join(f"{means[name][k]:.3f} ± {spreads[name][k]:.3f}" for name in gaps)
    column = np.array(gaps["random query"])[:, k]
    print(f"{beta:7g}  {cells}  {(column > 0.5).mean():10.0%}{(column < 0.01).mean():8.0%}")

# %% name="hump_picture"
top = betas[means["random query"].argmax()]
with draw.figure(
    words="The mean gap over β, with its standard error. Both curves are humps that go to 0 at both "
    f"ends. For random queries the top is at β = {top:g}; on a pattern it comes earlier.",
    size=(8, 4.6),
) as (picture, (ax,)):
    for (name, mean), role in zip(means.items(), ("landing", "token"), strict=True):
        draw.draw_band(ax, betas, mean - spreads[name], mean + spreads[name], role)
        draw.draw_path(ax, np.column_stack([betas, mean]), role, label=name, dots=True)
    ax.set(xscale="log", xlabel="β", ylabel="mean gap", ylim=(0, 1))
    ax.legend()
picture

# %% [markdown] name="figures_text"
# #### Two figures that go round *(5 minutes)*
#
# > *"Four patterns, a query near none of them, β = 16: settling ends more than half an answer's length
# > away from the answer."*
#
# > *"In 16 dimensions the gap is 41 to 78 percent, on average."*
#
# The next cell sets them beside your own numbers. For the second one nobody says how many patterns,
# which queries, which β. So it tries four set-ups, at β = 2, 4 and 8.

# %% name="figures"
at_16 = np.array(gaps["random query"])[:, betas == 16]
print(f"the four patterns of q1: gap {one_step_gap(P4_xi, P4, 16.0):.3f} at β = 16")
print(
    f"your 60 sets: mean gap {at_16.mean():.3f} at β = 16, above 0.5 in {(at_16 > 0.5).mean():.0%}"
)
window = betas[(means["random query"] >= 0.41) & (means["random query"] <= 0.78)]
print("your mean gap is from 41 to 78 % at β =", *(f"{beta:g}" for beta in window))
for count, length in ((4, 1.0), (3, 1.0), (8, 1.0), (4, 0.5)):
    rng, rows = np.random.default_rng(2), []
    for _ in range(20):
        rows.append(gap_curve(unit(rng, 1, length), unit(rng, count), [2.0, 4.0, 8.0]))
    low, high = np.sort(np.mean(rows, axis=0))[[0, -1]]
    print(f"{count} patterns, queries of length {length}: {low:.0%} to {high:.0%} over the three β")

# %% [markdown] name="figures_settled"
# <details><summary>What to make of them</summary>
#
# The first figure is true of its example, and the example is picked: the query stands near the middle,
# where all ties meet. The average over random queries at the same β is about half of that, and most
# queries have less than 0.5. The second figure names no set-up. At three β your mean gap is in
# the window, at the others it is not. Other numbers of patterns, other lengths, and already other draws (the
# first line of the four) move it. A range like this one fits many experiments, so it identifies none. Quote
# your own table, and say how it was made.
#
# </details>

# %% [markdown] name="see_it"
# ## See it
#
# The picture is drawn by *your* `settle`, `one_step_gap` and `local_rate`. *Energy from above* shows the
# four patterns of q1, the hop as an arrow to its landing (star), the hops after it, and where your
# `settle` ends (triangle; hollow if it is no valley). The black rays are the **ties**, where the two
# highest scores are equal. Two bars are the two lengths of the gap. Then the gap over β, and how long
# each hop of the walk is; these two are logarithmic. *(10 minutes)*
#
# Three questions. Write down what you expect, then move it.
#
# - **β**: go from one end to the other. At both ends the gap vanishes. Is the reason the same? Where
#   does the curve rise most steeply, and what happens to the triangle there?
# - **query**: choose "on pattern y₂" and compare β = 1 with β = 16. Then "where I put it", and drag it
#   around at β = 1. Is a pattern a place with a small gap?
# - **tie**: choose "on a tie" at β = 32. Why is the triangle hollow? Then "a hair beside it", which is
#   0.00001 away. What becomes of the gap? What do the lengths of the hops do on their way?

# %% name="explore"
explore.step_and_settling(energy, hop, settle, one_step_gap, local_rate)

# %% [markdown] name="see_answer"
# <details><summary>What there was to see</summary>
#
# - On the left the weights are nearly equal: landing and settled point are both at the mean. On the right
#   one weight is nearly 1: both are on a pattern. The curve is steepest where the valley in the middle
#   splits, just above β = 1.6, and the triangle leaves the middle.
# - At β = 1 the only valley is near the middle. A query on a pattern is far from it, and one hop does not
#   bring it there. At β = 16 the pattern has a valley of its own.
# - The symmetry of the patterns holds the walk on the tie, and there it settles on a saddle: the two answers
#   nearly coincide. A hair beside it the landing is nearly the same, and the settled point is a pattern.
#   The hops first become short, near the saddle, then long again, then short. A short hop says "near a
#   fixed point". It does not say "near a valley".
#
# </details>

# %% [markdown] name="claim"
# ## Check the claim
#
# > *"One step and its minimum coincide only in one corner: the query on a pattern, and the softmax
# > sharp."*
#
# In that corner they do, as you have seen. The word to test is **only**. Find at least three cases outside
# of it where your gap is below 0.01, each for another reason (you judge that; the cell counts only the
# gaps). A case is `(xi, Y, beta)`. It is outside when
# no pattern is within 0.1 of the query, or no weight is above 0.9. Give each a name of your own.
# `P4` and `P4_xi` are there; so are smaller sets like `P4[:1]`. Then write your verdict: `"true"` or
# `"false"`. *(8 minutes)*
#
# <details><summary>I find none</summary>
# The gap is 0 when the landing is a fixed point. When is that so? Think of both ends of β, of the
# smallest number of patterns, of a query that is at rest already, and of symmetry.
# </details>

# %% nbgrader={"grade_id": "claim_cases", "solution": true}
cases = {}  # {"my name for it": (xi, Y, beta), ...}
verdict = ""  # "true" or "false"
### BEGIN SOLUTION
cases = {
    "very hot": (P4_xi, P4, 1 / 64),
    "very cold, off the patterns": (np.array([0.25, 0.75]), P4, 64.0),
    "one pattern": (np.array([2.0, 1.0]), P4[:1], 1.0),
    "at rest already": (settle(P4_xi, P4, 1.0)[0], P4, 1.0),
    "held on a tie": (np.array([-0.125, -0.125]), P4, 32.0),
}
verdict = "false"
### END SOLUTION


# %% name="claim_outside"
def outside(xi, Y, beta):
    """Say whether a case is outside of the claimed corner, with its two numbers."""
    away, sharp = np.linalg.norm(Y - xi, axis=1).min(), softmax(beta * Y @ xi).max()
    return away >= 0.1 or sharp <= 0.9, away, sharp


# %% name="claim_check"
found = 0
for name, case in cases.items():
    gap, (out, away, sharp) = one_step_gap(*case), outside(*case)
    found += gap < 0.01 and out
    print(
        f"{name}: gap {gap:.1e}, nearest pattern {away:.2f} away, largest weight {sharp:.2f}",
        end=" ",
    )
    print("-> against the claim" if gap < 0.01 and out else "-> no counterexample")
measured = "false" if found >= 3 else "not refuted yet"
print(f"{found} counterexamples: by your measurement the claim is {measured};", end=" ")
mark = "✓" if verdict.strip().lower() == measured else "✗"
print(f"your verdict: {verdict or 'not written yet'} {mark}")

# %% [markdown] name="claim_settled"
# <details><summary>What is true</summary>
#
# "Only" is false. They coincide wherever the landing is a fixed point: with one pattern; from a query that
# is at rest already, also where the weights are far from sharp; on a tie that symmetry holds. And they come
# as close as you like towards both ends of β, for nearly any query. Half of the corner is not enough: on a
# pattern, but not sharp, the gap is *larger* than off the patterns (q3). What the claim has right is a
# theorem about one-step retrieval: for well separated patterns and a query near one of them, the error of
# one step shrinks exponentially in β. Enough is not the same as necessary.
#
# </details>

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Scroll so that the theory is out of sight. Answer in your own words, in the cell below, then open the
# answers. *(5 minutes)*
#
# 1. When is the gap exactly 0?
# 2. Your last hop had length δ. What bounds the error that is left?
# 3. Why not stop when the energy no longer changes?

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. When the landing is a fixed point: when the hop from the landing leads to the landing itself. A
#    memory stores its patterns so that they are fixed points.
# 2. $\rho/(1-\rho)$ times δ, with the rate $\rho$, the largest eigenvalue of $\beta\,\mathrm{Cov}_a(y)$. Near
#    $\rho = 1$ this factor is huge; $\rho = 1$ is where a valley splits.
# 3. Because the energy is flat at the bottom: it changes with the square of the error. And because a falling
#    energy does not even mean that a walk comes to rest (lesson 6).
#
# </details>
#
# And your predictions? The next cells measure all five with your functions.


# %% name="measure"
def mean_gap(beta, on_pattern=False, sets=20):
    """Return the mean gap of queries of length 1 (or on a pattern) over random sets."""
    rng, found = np.random.default_rng(3), []
    for _ in range(sets):
        patterns, query = unit(rng, 4), unit(rng, 1)
        found.append(gap_curve(patterns[:1] if on_pattern else query, patterns, [beta])[0])
    return np.mean(found)


def share_at_the_nearest(count=200):
    """Return how often, in percent, a walk ends nearest to the pattern nearest to its query."""
    rng, hits = np.random.default_rng(4), 0
    for _ in range(count):
        Y, xi = rng.normal(size=(8, 2)), rng.normal(size=2)
        ends = np.array([xi, settle(xi, Y, 8.0)[0]])
        nearest = np.linalg.norm(Y[:, None] - ends, axis=2).argmin(axis=0)
        hits += nearest[0] == nearest[1]
    return 100 * hits / count


# %% name="reveal"
reveal(
    prediction,
    {
        "q1": lambda: pick(100 * one_step_gap(P4_xi, P4, 16.0), a=1, b=10, c=30, d=54),
        "q2": lambda: pick(max([1, 4, 16, 64], key=mean_gap), a=1, b=4, c=16, d=64),
        "q3": lambda: pick(mean_gap(1.0, on_pattern=True) / mean_gap(1.0), a=0, b=0.5, c=1, d=2),
        "q4": lambda: pick(settle(np.array([0.5]), pair, 1.01)[1], a=15, b=80, c=800, d=8000),
        "q5": lambda: pick(share_at_the_nearest(), a=95, b=60, c=25, d=5),
    },
)  # fmt: skip

# %% [markdown] name="nearest_text"
# <details><summary>Why so seldom the nearest?</summary>
#
# Nothing in a hop compares distances. It compares scores, and a long pattern has a high score from far
# away. The walk moves towards it, and its score rises further. For patterns of one and the same length,
# the highest score and the smallest distance would be the same pattern.
#
# </details>

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: one step of something else *(25 minutes)*
#
# Many programs take one step of a method that would settle if one let it. Choose one: mean shift (move a
# point to the weighted mean of the data around it), a gradient step of ridge regression, a k-means step,
# or any other that descends an energy.
#
# First write `relaxation_gap(step, x, tol, max_steps)`. It repeats any `step`, a function from an array to
# an array. It returns the distance from where the steps settle to where *one* step leads, over the length
# of the latter; 0.0 if the two are the same place; `nan` if the last of `max_steps` steps was still longer
# than `tol`. The first step counts as one of `max_steps`. A walk that runs away, to numbers that are inf or
# nan, has not settled either. The check below tries several steps.
#
# Then measure your method, on data of your own or made by you, at three scales at least (a width, a
# temperature, a step size): mean gap, median gap, the share above 0.5, and how many did not settle. If
# your step is a full gradient step, check it: $\text{step}(x) = x - \nabla E(x)$ to 1e-8. Find one case where
# one step and settling coincide.
#
# | read by a person | points |
# |---|---|
# | measurement: the step agrees with $x - \nabla E(x)$ to 1e-8, or it is said why it cannot | 1 |
# | measurement: a table with mean, median and share above 0.5, at three scales at least | 1 |
# | measurement: what did not settle is counted, and left out of the means | 1 |
# | report: says at which scales one step is as good as settling, and why there | 1 |
# | report: one case where they coincide, with the reason | 1 |
# | report: says what the yardstick is, and what another one would change | 1 |


# %% nbgrader={"grade_id": "relaxation_gap", "solution": true}
def relaxation_gap(step, x: np.ndarray, tol: float = 1e-10, max_steps: int = 10_000) -> float:
    """Return the distance from one step to where the steps settle, over the length of one step.

    step: function of an array, returns an array of the same shape.  x: start.  tol: length of a
    step that counts as none.  max_steps: most steps; nan if they do not settle.

    >>> round(float(relaxation_gap(lambda x: x / 2 + 1, np.array([4.0]))), 4)
    0.3333
    >>> float(relaxation_gap(lambda x: -x, np.array([4.0]), max_steps=50))
    nan
    """
    ### BEGIN SOLUTION
    before, landing = x, step(x)
    place, steps = landing, 1
    while not np.linalg.norm(place - before) <= tol:
        if steps == max_steps:
            return float("nan")
        before, place, steps = place, step(place), steps + 1
    distance = np.linalg.norm(place - landing)
    return distance / np.linalg.norm(landing) if distance > 0 else 0.0
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(relaxation_gap)

# %% nbgrader={"grade_id": "project_step", "solution": true}
# Your step, its energy, and the check that the step is a gradient step.
### BEGIN SOLUTION
rng = np.random.default_rng(5)
data = np.vstack([rng.normal(c, 0.5, size=(20, 2)) for c in ((3, 0), (0, 3), (4, 4))])


def closeness(x, width):
    return -((data - x) ** 2).sum(axis=1) / (2 * width**2)


def shift(x, width):
    return softmax(closeness(x, width)) @ data


x, h, slope = np.array([2.0, 1.5]), 1e-5, []
for side in h * np.eye(2):
    up, down = (-logsumexp(closeness(x + s, 0.7)) * 0.7**2 for s in (side, -side))
    slope.append((up - down) / (2 * h))
print(f"step and x - gradient differ by {np.abs(shift(x, 0.7) - (x - slope)).max():.0e}")
### END SOLUTION

# %% nbgrader={"grade_id": "project_table", "solution": true}
# Your table: mean, median, share above 0.5, not settled, at three scales at least.
### BEGIN SOLUTION
starts = rng.uniform(-1, 5, size=(40, 2))
print("width   mean   median   above 0.5   not settled")
for width in (0.1, 0.3, 0.6, 1.0, 2.0, 10.0):
    found = np.array(
        [relaxation_gap(lambda x, w=width: shift(x, w), s, 1e-8, 1000) for s in starts]
    )
    kept = found[np.isfinite(found)]
    print(
        f"{width:5}  {kept.mean():.3f}  {np.median(kept):.3f}  {(kept > 0.5).mean():8.0%}", end=""
    )
    print(f"  {np.isnan(found).sum():8} of {len(found)}")
alone = data[np.argmax(data @ [1, 1])]
print(
    f"from the outermost point, width 0.05: {relaxation_gap(lambda x: shift(x, 0.05), alone):.0e}"
)
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# Mean shift is a full gradient step on minus the width squared times the logarithm of the density of the
# data: the two agree to far better than 1e-8. One step is nearly settled when the width is large, because
# all weights are equal then and one step leads to the mean; and when it is very small, because one weight
# is 1 then and one step leads to a single point of the data. In between, clusters pull, and it takes many
# steps to cross them: a hump, as for attention, where one over the width squared plays the part of β. A
# start on an outlying point, with a small width, stays where it is: one step and settling coincide. What
# does not settle within the limit is counted and left out. The yardstick is the length of the landing, so it
# depends on the origin of the data; the width would be one that does not.
# ### END SOLUTION

# %% [markdown] name="closing"
# ## The whole course on one page
#
# Three kernels, seven lessons, and one line. Write $u = \beta\,Y\xi$ for the vector of β times the scores.
# Each kernel has one function $f(u)$, its **potential**; the gradient of $f$ gives the **weights**. Then
#
# $$E(\xi) = \tfrac12\|\xi\|^2 - \tfrac1\beta\, f(u), \qquad \text{and a hop leads to } \nabla f(u)\, Y .$$
#
# Fill in both rows from memory, as functions of an array `u` of shape `(n,)`: a potential returns a number, the
# weights an array `(n,)`. `logsumexp`, `softmax` and NumPy are enough. A constant in $f$ does not matter. The
# cell below judges the two rows by each other. *(8 minutes, with the picture)*

# %% nbgrader={"grade_id": "closing_kernels", "solution": true}
potential = {"softmax": None, "tanh": None, "linear": None}
weights = {"softmax": None, "tanh": None, "linear": None}
### BEGIN SOLUTION
potential = dict(
    softmax=logsumexp,
    tanh=lambda u: np.logaddexp(u, -u).sum(),
    linear=lambda u: u @ u / 2,
)
weights = dict(softmax=softmax, tanh=np.tanh, linear=lambda u: u)
### END SOLUTION

# %% name="closing_check"
u = np.array([0.7, -1.2, 0.4])
for kernel in potential:
    if potential[kernel] is None or weights[kernel] is None:
        print(f"{kernel:8} not written yet")
        continue
    off = np.abs(approx_fprime(u, potential[kernel], 1e-7) - weights[kernel](u)).max()
    print(
        f"{kernel:8} gradient of the potential and weights: {off:.0e} apart", "✓✗"[int(off > 1e-5)]
    )

# %% [markdown] name="closing_text"
# Three landscapes, one query, one hop each, and all hops after it, drawn from your two rows; your
# `relaxation_gap` says whether they settle. Set β to 1/16, then to 1, then to 4. Find each lesson in it:
#
# 1. Softmax lands on an average: never outside the triangle of the tokens.
# 2. The landscape has valleys, fewer or more with β, and a token need not have one.
# 3. The arrow is one step of size 1. In the log no line ever rises.
# 4. How far the log falls at the first hop is the drop of lesson 4 without its rise of 1.
# 5. Tanh can land outside the tokens. Its valleys come in opposite pairs.
# 6. Linear falls at every hop and does not come to rest, once β is above the critical one.
# 7. From the star to the triangle: what attention leaves out when it stops after one hop.

# %% name="closing_picture"
explore.three_kernels(potential, weights, relaxation_gap)

# %% [markdown] name="limits"
# ## What was not shown
#
# - A head does not want to settle. What it adds to the token is read out of the landing (lesson 3), and
#   training has shaped the patterns for that one hop. A gap is no error of attention.
# - Random patterns, and few of them. In a trained model patterns are longer, more, and related; β times their
#   length squared is what sets the scale.
# - A whole model makes one hop a layer, each time in another landscape, with a residual in between. That is
#   not settling either.
# - The bound of step 3 holds near the valley. Far from it a hop may be short for another reason, as you saw
#   beside the tie.
#
# **Read on.** H. Ramsauer and others, *Hopfield networks is all you need*, ICLR 2021 (arXiv 2008.02217):
# where hops converge, and when one hop retrieves a well separated pattern. A. L. Yuille
# and A. Rangarajan, *The concave-convex procedure*, Neural Computation 15 (2003): why the hops become short.
# B. K. Sriperumbudur and G. R. G. Lanckriet, *On the convergence of the concave-convex procedure*, NIPS
# 2009: when
# they converge. D. Comaniciu and P. Meer, *Mean shift*, IEEE Transactions on Pattern Analysis and Machine
# Intelligence 24 (2002): the method of the project.
