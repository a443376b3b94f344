# %% [markdown] name="challenge"
# # 1 · The softmax average is a gradient
#
# A language model reads a text as **tokens**; here a token is simply a vector. An **attention
# head** is the part that looks back: for a vector called the query, it gives every token a weight
# with a softmax, and then averages the tokens with those weights. It looks like a recipe. **Is that average the gradient of something?** If it is,
# attention is a step on a landscape, and the rest of this course is a walk on it.
#
# When you are done you can
#
# - compute a log-sum-exp and a softmax that survive any score,
# - say where the inverse temperature β goes, and where it cancels,
# - differentiate a function numerically, and know how far to trust the result,
# - judge any gradient anybody gives you, including your own.
#
# **Time** about two hours. **You need** NumPy arrays, `@`, and partial derivatives.
# Nothing from a later lesson.
#
# Run each cell with Shift + Enter, from top to bottom. Where it says
# `raise NotImplementedError`, your own code goes.

# %% name="imports"
import numpy as np

from hopping import check, check_answers, commit, draw, explore, pick, reveal

# %% [markdown] name="warm_up"
# ## Warm up
#
# Three things this lesson leans on. Write a letter for each, then run both cells. *(3 minutes)*
#
# **w1.** The slope of $\ln(1 + e^x)$ at $x = 0$ is\
# (a) 0 · (b) 0.6931 · (c) 0.5 · (d) 1.
#
# **w2.** `Y` has shape `(3, 2)` and `xi` has shape `(2,)`. Then `Y @ xi` has shape\
# (a) `(2,)` · (b) `(3,)` · (c) `(3, 1)` · (d) none, it is an error.
#
# **w3.** In NumPy, `np.exp(1000.0)` is\
# (a) inf · (b) a very large number · (c) 0 · (d) nan.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "c", "w2": "b", "w3": "a"}
### END SOLUTION

# %% name="warm_up_check"
with np.errstate(over="ignore"):  # the point of w3, without NumPy's warning
    large = np.exp(1000.0)
check_answers(
    answers,
    {
        "w1": lambda: pick((np.log1p(np.exp(1e-6)) - np.log1p(np.exp(-1e-6))) / 2e-6,
                           a=0, b=0.6931, c=0.5, d=1),
        "w2": lambda: pick(str((np.ones((3, 2)) @ np.ones(2)).shape),
                           a="(2,)", b="(3,)", c="(3, 1)", d="none, it is an error"),
        "w3": lambda: pick(str(large),
                           a="inf", b="a very large number", c="0", d="nan"),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# A query $\xi$ gives token $y_\tau$ the **score** $s_\tau = y_\tau \cdot \xi$. Two numbers come
# from the scores and an **inverse temperature** $\beta > 0$:
#
# $$a_\tau = \frac{e^{\beta s_\tau}}{\sum_\sigma e^{\beta s_\sigma}}
# \qquad\text{and}\qquad
# \mathrm{lse} = \frac{1}{\beta} \ln \sum_\tau e^{\beta s_\tau}.$$
#
# The $a_\tau$ are the attention **weights**; lse is the **log-sum-exp** of the scores.
# Commit to an answer for each question before you compute anything. A guess counts: the points are
# for committing, not for being right, and what surprises you is what you will remember.
# *(5 minutes)*
#
# **q1.** Ten scores are all 0, and β = 2. Then lse is\
# (a) 0 · (b) 1.151 · (c) 2.303 · (d) 10.
#
# **q2.** You add 1000 to every score. In exact arithmetic the weights change\
# (a) not at all · (b) a little · (c) to all equal · (d) to a single 1.
#
# **q3.** Two tokens; the scores differ by 1. The better one gets 99 % of the weight at β ≈\
# (a) 1 · (b) 2.3 · (c) 4.6 · (d) 9.9.
#
# **q4.** You differentiate lse numerically, from both sides, with step h. The error is smallest
# at h =\
# (a) 1e-2 · (b) 1e-5 · (c) 1e-8 · (d) 1e-12.
#
# **q5.** The scores are 3, 2, 1, 0. As β goes to 0, lse goes to\
# (a) 0 · (b) their mean · (c) their maximum · (d) infinity.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "b", "q2": "a", "q3": "c", "q4": "b", "q5": "d"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, in five small steps
#
# **Step 1: scores.** Tokens are the rows of $Y$, shape $(n, d)$. The query $\xi$ has shape $(d,)$.
# All scores at once: $s = Y\xi$, shape $(n,)$. β is *not* part of a score.
#
# **Step 2: a soft maximum.** The sum inside lse has $n$ positive terms. The largest alone is
# $e^{\beta \max s}$, and all together are at most $n$ times that. Take logs and divide by β:
#
# $$\max s \;\le\; \mathrm{lse} \;\le\; \max s + \frac{\ln n}{\beta}.$$
#
# So lse is in the units of a score. The right end is reached when all scores are equal; the left
# end is approached when β grows.
#
# **Step 3: its gradient.** Move the query. The chain rule gives three factors: $1/\beta$ from the
# front, $1/\text{sum}$ from the logarithm, and $\beta\, y_\tau e^{\beta s_\tau}$ from each term:
#
# $$\nabla \mathrm{lse}(\xi) = \frac{1}{\beta} \cdot
# \frac{\sum_\tau \beta\, y_\tau\, e^{\beta s_\tau}}{\sum_\sigma e^{\beta s_\sigma}}
# = \sum_\tau a_\tau\, y_\tau = a\,Y.$$
#
# The β from the exponent cancels the $1/\beta$ in front. **The softmax average is the gradient of
# lse.** It is the answer to the challenge; the rest of the lesson makes you trust it.
#
# **Step 4: a common shift.** Add $c$ to every score. Each term gains the same factor
# $e^{\beta c}$. In the weights it cancels; in lse it comes out as exactly $c$. That is why you may
# subtract the largest score before you exponentiate, and nothing is lost.
#
# **Step 5: its curvature.** Differentiate once more. With the average $m = aY$,
#
# $$\nabla^2 \mathrm{lse}(\xi) = \beta \sum_\tau a_\tau\, (y_\tau - m)^\top (y_\tau - m):$$
#
# β times the covariance of the tokens under the weights. (A token is a row, so
# $(y - m)^\top (y - m)$ is a $(d, d)$ table of products, an outer product.) A covariance has no negative eigenvalue,
# so **lse is convex**: it curves upwards, or not at all.

# %% [markdown] name="by_hand"
# ### By hand
#
# Two tokens $y_1 = (1, 0)$ and $y_2 = (0, 1)$, the query $\xi = (\ln 3,\, 0)$, and β = 1.
#
# - Scores: $s = (\ln 3,\, 0)$. Exponentials: $(3, 1)$. Sum: 4.
# - Weights: $a = (\tfrac34, \tfrac14)$. And $\mathrm{lse} = \ln 4$.
# - Gradient: $\tfrac34\,(1, 0) + \tfrac14\,(0, 1) = (\tfrac34, \tfrac14)$.
#
# Check the band of step 2 in your head: $\ln 3 \le \ln 4 \le \ln 3 + \ln 2 = \ln 6$. The next cell
# draws these numbers.

# %% name="first_picture"
with draw.figure(
    ncols=2,
    words="Two scores, ln 3 and 0, become the weights 3/4 and 1/4: the larger score gets three "
    "times the weight, because the scores differ by ln 3 and beta is 1.",
) as (picture, axes):
    draw.draw_scores_and_weights(axes, [np.log(3), 0.0], [3 / 4, 1 / 4])
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Five functions. After each one, `check(...)` tells you at once what is wrong and what to think
# about. Arrays that you are given must not be changed; what you return must be a new array or
# number. Numbers are compared to about nine digits, those of `fd_grad` to eight.

# %% [markdown] name="practice_lse"
# ### 1. `lse`: the soft maximum *(12 minutes)*
#
# $$\mathrm{lse}(\xi) = \frac{1}{\beta} \ln \sum_\tau e^{\beta\, y_\tau \cdot \xi}$$
#
# One number, in units of a score. Scores may be in the thousands: use step 4 so that no
# exponential overflows, and put back after the logarithm what you took out.
#
# <details><summary>I get inf, -inf or nan</summary>
# The largest number that exp can take is about 709. Which shift makes the largest exponent 0?
# </details>
# <details><summary>One example passes, the one with beta = 4 does not</summary>
# Follow the units. The exponent is beta times a score; the result is a score. Is everything that
# you add of one kind?
# </details>


# %% nbgrader={"grade_id": "lse", "solution": true}
def lse(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the log-sum-exp of the scores, in units of a score.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> round(float(lse(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0)), 4)
    2.1269
    """
    ### BEGIN SOLUTION
    u = beta * (Y @ xi)
    top = u.max()
    return (top + np.log(np.exp(u - top).sum())) / beta
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(lse)

# %% [markdown] name="practice_fd"
# ### 2. `fd_grad`: a judge for gradients *(10 minutes)*
#
# Before you write a formula for a gradient, build something that can judge it. Step a little to
# both sides, in one coordinate at a time:
#
# $$\frac{\partial f}{\partial \xi_j} \approx \frac{f(\xi + h\,e_j) - f(\xi - h\,e_j)}{2h}$$
#
# `f` takes a point of shape `(d,)` and returns a number. The result has the shape of `xi` and is
# not made of whole numbers, even if `xi` is. `xi` itself must be as before when you are done: work
# on copies. With $h = 10^{-5}$ you get about eight right digits. You will use this judge in every later lesson.
#
# <details><summary>All entries come out equal</summary>
# <code>xi + h</code> moves every coordinate at once. You want a copy in which one entry moved.
# </details>
# <details><summary>It says that my input changed</summary>
# <code>x = xi</code> is a second name for the same array, not a second array.
# </details>


# %% nbgrader={"grade_id": "fd_grad", "solution": true}
def fd_grad(f, xi: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Return the gradient of f at xi by central differences, shape (d,).

    f: function of a point, returns a number.  xi: point, shape (d,).  h: step.

    >>> fd_grad(lambda x: x[0] ** 2 + 3 * x[1], np.array([1.0, 2.0])).round(4)
    array([2., 3.])
    """
    ### BEGIN SOLUTION
    gradient = np.empty(len(xi))
    for j in range(len(xi)):
        step = np.zeros(len(xi))
        step[j] = h
        gradient[j] = (f(xi + step) - f(xi - step)) / (2 * h)
    return gradient
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(fd_grad)

# %% [markdown] name="practice_weights"
# ### 3. `attention_weights`: the softmax *(5 minutes)*
#
# $$a_\tau = \frac{e^{\beta s_\tau}}{\sum_\sigma e^{\beta s_\sigma}}$$
#
# One weight for each *token*, shape `(n,)`. They are not negative and they sum to 1. The shift
# that saved `lse` saves you here too, and now there is nothing to put back. (Why? You will be
# asked below.)
#
# <details><summary>I get nan at large beta</summary>
# inf / inf is nan. Subtract the largest exponent first.
# </details>
# <details><summary>I get two weights for three tokens</summary>
# Print the shape of your scores. One score belongs to one row of Y.
# </details>


# %% nbgrader={"grade_id": "attention_weights", "solution": true}
def attention_weights(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the softmax of beta times the scores: one weight per token, shape (n,), sum 1.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> attention_weights(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([0.8808, 0.1192])
    """
    ### BEGIN SOLUTION
    u = beta * (Y @ xi)
    exponentials = np.exp(u - u.max())
    return exponentials / exponentials.sum()
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(attention_weights)

# %% [markdown] name="practice_grad"
# ### 4. `lse_grad`: the average is the gradient *(4 minutes)*
#
# $$\nabla \mathrm{lse}(\xi) = \sum_\tau a_\tau\, y_\tau = a\,Y$$
#
# A point in the space of the query, shape `(d,)`. Every token pulls it with its weight, so it lies
# among the tokens. You may call your own `attention_weights`.
#
# <details><summary>It raises: shapes not aligned</summary>
# Write the shapes under the formula: <code>(n,)</code>, <code>(n, d)</code>, and you want
# <code>(d,)</code>. On which side of Y do the weights stand?
# </details>


# %% nbgrader={"grade_id": "lse_grad", "solution": true}
def lse_grad(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the gradient of lse with respect to the query, shape (d,).

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> lse_grad(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([1.7616, 0.596 ])
    """
    ### BEGIN SOLUTION
    return attention_weights(xi, Y, beta) @ Y
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(lse_grad)

# %% [markdown] name="let_the_judge_speak"
# #### Let your judge speak
#
# `lse_grad` was written from a formula. `fd_grad` knows no formula: it only calls your `lse`. The
# next cell sets them side by side at three temperatures. They should differ by far less than a
# millionth.

# %% name="judge"
Y = np.array([[1.0, 0.0, -0.5], [0.5, 1.5, 0.0], [-1.0, 0.25, 0.75], [0.0, -1.0, 1.0]])
xi = np.array([0.25, 0.5, -0.125])
for beta in (0.1, 1.0, 16.0):
    difference = fd_grad(lambda x: lse(x, Y, beta), xi) - lse_grad(xi, Y, beta)
    print(f"beta {beta:4}: largest difference {np.abs(difference).max():.0e}")

# %% [markdown] name="practice_hessian"
# ### 5. `lse_hessian`: the curvature *(12 minutes)*
#
# $$\nabla^2 \mathrm{lse}(\xi) = \beta \sum_\tau a_\tau\, (y_\tau - m)^\top (y_\tau - m),
# \qquad m = a\,Y$$
#
# A symmetric matrix of shape `(d, d)`. Centre the tokens at $m$ first. The other road, second
# moment minus $m^\top m$, subtracts two large numbers that nearly agree.
#
# <details><summary>I have a loop over tokens and want to get rid of it</summary>
# With the centred tokens as rows of D, the sum is D transposed, times the weights, times D.
# Where must the weights stand so that each multiplies its own token?
# </details>
# <details><summary>One token alone fails</summary>
# One token alone is its own average. What is left of it when it is centred?
# </details>


# %% nbgrader={"grade_id": "lse_hessian", "solution": true}
def lse_hessian(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the second derivatives of lse: beta times a covariance, shape (d, d).

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> lse_hessian(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([[ 0.42  , -1.0499],
           [-1.0499,  2.6248]])
    """
    ### BEGIN SOLUTION
    a = attention_weights(xi, Y, beta)
    centred = Y - a @ Y
    return beta * (centred.T * a) @ centred
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(lse_hessian)

# %% [markdown] name="see_it"
# ## See it
#
# The picture below is drawn by *your* functions, all five panels of it. For each question say what
# you expect, then move it. *(10 minutes)*
#
# - **β**: move it from one end to the other. Which end makes the weights equal, which end picks one
#   token? Where in its band is lse then?
#   To the left lse leaves its panel at the top: how far up is it at β = 1/64?
# - **tokens**: with one token, what is the weight, and what is lse? Does β matter?
# - **+1000**: press it. The scores and lse rise by 1000. Which panels do not change? Why exactly not?
# - **query**: drag it, or move it with the arrow keys. Do formula and finite differences ever
#   disagree visibly? Try the largest β, near a query that gives two tokens the same score.

# %% name="explore"
explore.scores_and_weights(lse, attention_weights, lse_grad, fd_grad)

# %% [markdown] name="claim"
# ## Check the claim
#
# > *"Softmax is the gradient of a concave function."*
#
# You can read this on the web. You own a Hessian: test it. A twice differentiable function is concave
# where no eigenvalue of its Hessian is positive, and convex where none is negative.
#
# 200 times, draw a query in 3 dimensions and 5 tokens with `rng.normal`, and take the eigenvalues of
# your `lse_hessian` at β = 1 (`np.linalg.eigvalsh` gives them in ascending order). Keep the lowest and
# the highest of all. Set `lowest` and `highest`, then write your verdict on lse: `"convex"`,
# `"concave"` or `"neither"`. *(10 minutes)*

# %% nbgrader={"grade_id": "claim_measurement", "solution": true}
rng = np.random.default_rng(0)
lowest, highest = None, None  # measure them
verdict = ""  # "convex", "concave" or "neither"
### BEGIN SOLUTION
ends = []
for _ in range(200):
    eigenvalues = np.linalg.eigvalsh(lse_hessian(rng.normal(size=3), rng.normal(size=(5, 3)), 1.0))
    ends.append([eigenvalues[0], eigenvalues[-1]])
lowest, highest = np.min(ends), np.max(ends)
verdict = "convex"
### END SOLUTION

# %% name="claim_check"
if lowest is None:
    print("Measure `lowest` and `highest` first.")
else:
    measured = {(True, False): "convex", (False, True): "concave"}.get(
        (lowest > -1e-9, highest < 1e-9), "neither"
    )
    print(f"eigenvalues from {lowest:.2g} to {highest:.2g}: by your measurement lse is {measured}")
    mark = "✓" if verdict.strip().lower() == measured else "✗"
    print(f"your verdict: {verdict or 'not written yet'} {mark}")

# %% [markdown] name="claim_settled"
# <details><summary>What is true</summary>
#
# The claim is false: lse is *convex*. Your 200 draws found no negative eigenvalue, and step 5 says why
# there is none anywhere: the Hessian is a covariance. What is concave is $-\mathrm{lse}$, and it is
# $-\mathrm{lse}$ that enters the energy in lesson 2. The claim lost a sign on the way.
#
# </details>

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Close the theory above. Answer in your own words, in the cell below, then open the answers.
# *(6 minutes)*
#
# 1. Where do the two βs cancel?
# 2. What is the curvature of lse, in words?
# 3. Why is it exact to subtract the maximum?

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. In the gradient: the chain rule brings one β down from the exponent, and the $1/\beta$ in
#    front of the logarithm removes it. You meet this again in lesson 3, where a step of size
#    exactly 1 depends on it.
# 2. β times the covariance of the tokens under the weights. It returns in lesson 2, where it
#    decides how many valleys there are, and in lesson 7, where it is the speed of settling.
# 3. The factor $e^{\beta c}$ is common to all terms: it cancels in the weights, and comes out of lse
#    as exactly $c$. Lesson 2 needs it for mixture weights far too large to exponentiate.
#
# </details>
#
# And your predictions? The next cell measures all five with your functions.

# %% name="measure"
column = np.array([[3.0], [2.0], [1.0], [0.0]])
one = np.array([1.0])


def best_step():
    """Return the step at which your judge is nearest to your formula."""
    errors = {
        h: np.abs(fd_grad(lambda x: lse(x, Y, 1.0), xi, h) - lse_grad(xi, Y, 1.0)).max()
        for h in (1e-2, 1e-5, 1e-8, 1e-12)
    }
    return min(errors, key=errors.get)


def enough_beta():
    """Return the smallest β on a fine grid that gives the better of two tokens 99 %."""
    return next(b for b in np.arange(0.5, 12, 0.01)
                if attention_weights(one, column[:2], b)[0] >= 0.99)  # fmt: skip


def shift_effect():
    """Say what adding 1000 to every score does to the weights."""
    change = attention_weights(one, column + 1000, 1.0) - attention_weights(one, column, 1.0)
    return "not at all" if np.abs(change).max() < 1e-12 else "a little"


# %% name="reveal"
reveal(
    prediction,
    {
        "q1": lambda: pick(lse(one, np.zeros((10, 1)), 2.0), a=0, b=1.151, c=2.303, d=10),
        "q2": lambda: pick(shift_effect(),
                           a="not at all", b="a little", c="to all equal", d="to a single 1"),
        "q3": lambda: pick(enough_beta(), a=1, b=2.3, c=4.6, d=9.9),
        "q4": lambda: pick(best_step(), a=1e-2, b=1e-5, c=1e-8, d=1e-12),
        "q5": lambda: pick("infinity" if lse(one, column, 1e-6) > 1e5 else "their mean",
                           a="0", b="their mean", c="their maximum", d="infinity"),
    },
)  # fmt: skip

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: a gradient checker you would trust *(35 minutes)*
#
# Write `gradcheck(f, grad, xi)`. It returns `True` when `grad` is the gradient of `f` at `xi`, and
# `False` when it is not. One step size is not enough: sweep h over several powers of ten and take the
# smallest error. Judge it relative to 1 + the largest entry of the gradient: then large gradients may
# have larger errors, and a gradient of 0 can pass too. (`f` takes real points only, so a complex step
# is no way out here.) The next cells check its answers.
#
# Then measure and report, for lse on the tokens `Y` and the query `xi` of the judge's cell, at
# β = 0.1, 1 and 16: the error against h, and what you conclude. On log-log axes, with which slope does
# it fall, with which does it rise, and why? What happens *near* (not at) a tie: at β = 4096 and the
# query $(1.5, 0.5, 0) + 10^{-4}\,(y_1 - y_2)$? What would a complex step
# ($\operatorname{Im} f(\xi + i h e_j) / h$ with $h = 10^{-30}$) change for your own lse, and what does
# it ask of the code?
#
# | read by a person | points |
# |---|---|
# | measurement: the sweep is shown for three β, with readable axes or columns | 2 |
# | measurement: the tie or the complex step is measured, not only described | 1 |
# | report: both regimes (truncation, rounding) are explained with the measured slopes | 2 |
# | report: a threshold for pass and fail is stated, with a reason | 1 |


# %% nbgrader={"grade_id": "gradcheck", "solution": true}
def gradcheck(f, grad, xi: np.ndarray) -> bool:
    """Return whether grad is the gradient of f at xi.

    f: function of a point, shape (d,), returns a number.  grad: function of a point, returns an
    array of shape (d,).  xi: point, shape (d,).

    >>> gradcheck(lambda x: x[0] ** 2, lambda x: 2 * x, np.array([3.0]))
    True
    """
    ### BEGIN SOLUTION
    claimed = grad(xi)
    errors = [np.abs(fd_grad(f, xi, h) - claimed).max() for h in 10.0 ** -np.arange(2, 9)]
    return bool(min(errors) <= 1e-6 * (1 + np.abs(claimed).max()))
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(gradcheck)

# %% nbgrader={"grade_id": "project_sweep", "solution": true}
# Your sweep over h: a table or a plot.
### BEGIN SOLUTION
print("h        " + "".join(f"beta {beta:<8}" for beta in (0.1, 1.0, 16.0)))
for h in 10.0 ** -np.arange(1, 11):
    errors = [
        np.abs(fd_grad(lambda x, b=beta: lse(x, Y, b), xi, h) - lse_grad(xi, Y, beta)).max()
        for beta in (0.1, 1.0, 16.0)
    ]
    print(f"{h:.0e}    " + "".join(f"{error:<13.0e}" for error in errors))
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# Down to about h = 1e-5 the error falls like h²: that is truncation. Below, it rises like 1/h:
# that is rounding, 1e-16 divided by the distance of the two points. A complex step subtracts
# nothing, so it has no rounding branch, but f must take complex numbers and be analytic: no
# absolute values, no comparison of complex numbers.
# ### END SOLUTION

# %% [markdown] name="limits"
# ## What was not shown
#
# - One query, one head, no learned matrices. Where tokens, queries and keys come from is lesson 3.
# - lse has no valleys: it is convex and unbounded. A bowl turns it into a landscape in lesson 2.
# - That a gradient exists says nothing yet about why one would step along it. That is lesson 3.
#
# **Where you are.** `from hopping.progress import progress` and then `progress()`, in a cell of your
# own in any lesson, shows which exercises pass in which lesson.
#
# **Read on.** H. Ramsauer and others, *Hopfield networks is all you need*, ICLR 2021
# (arXiv 2008.02217), section 2 and appendix A: the same lse, with patterns as columns where we have
# rows. S. Boyd and L. Vandenberghe, *Convex optimization* (2004), section 3.1.5: log-sum-exp is
# convex. W. Squire and G. Trapp, *Using complex variables to estimate derivatives of real
# functions*, SIAM Review 40 (1998): the complex step.
