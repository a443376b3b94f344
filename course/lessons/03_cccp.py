# %% [markdown] name="challenge"
# # 3 · One hop is attention
#
# Lesson 1 found the softmax average as a gradient. Lesson 2 built a landscape, the energy E. Now
# walk on it. **How far should one step go, and what does it promise?** The answer is a famous
# method of optimisation. One step of it is what an attention head does.
#
# When you are done you can
#
# - write the hop in two ways, and say why its step size is exactly 1,
# - state how far the energy falls at least, and use that as a test of any program,
# - compute an attention head directly, and again as one hop and a fixed linear map,
# - say which matrix must be invertible for that, and how many digits it costs.
#
# **Time** about 2¼ hours, 40 minutes of it the project. **You need** log-sum-exp and its gradient
# (lesson 1), and the energy of lesson 2. Both are given below in SciPy's words.

# %% name="imports"
import numpy as np
from scipy.special import logsumexp, softmax

from hopping import check, check_answers, commit, draw, explore, pick, reveal

# %% [markdown] name="warm_up"
# ## Warm up
#
# From lessons 1 and 2. Remember
# $\mathrm{lse}(\xi) = \tfrac{1}{\beta} \ln \sum_\tau e^{\beta\, y_\tau \cdot \xi}$ and
# $E(\xi) = \tfrac12 \|\xi\|^2 - \mathrm{lse}(\xi)$. Write a letter for each, then run the cells.
# *(4 minutes)*
#
# **w1.** The gradient of lse at a query is\
# (a) the token of the highest score · (b) the average · (c) the softmax average · (d) β times (c).
#
# **w2.** Take β = 16. The curvature of E in any direction, at any point, is at most\
# (a) 0 · (b) 1 · (c) 16 · (d) 256.
#
# **w3.** Draw the tangent plane of −lse at a point. Compared with −lse it lies\
# (a) nowhere below · (b) nowhere above · (c) above near the point only · (d) below near it only.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "c", "w2": "b", "w3": "a"}
### END SOLUTION

# %% name="warm_up_slope"
rng = np.random.default_rng(0)
B_xi = np.array([0.25, 0.5, -0.125])
B_Y = np.array([[1.0, 0.0, -0.5], [0.5, 1.5, 0.0], [-1.0, 0.25, 0.75], [0.0, -1.0, 1.0]])


def what_the_slope_is():
    """Differentiate lse numerically at β = 4 and say which of four points the gradient is."""
    a = softmax(4 * B_Y @ B_xi)
    shifts = 1e-5 * np.vstack([np.eye(3), -np.eye(3)])
    ups, downs = np.split(logsumexp(4 * (B_xi + shifts) @ B_Y.T, axis=1) / 4, 2)
    points = {"the token of the highest score": B_Y[a.argmax()], "the average": B_Y.mean(axis=0),
              "the softmax average": a @ B_Y, "β times (c)": 4 * a @ B_Y}  # fmt: skip
    return min(points, key=lambda name: np.abs(points[name] - (ups - downs) / 2e-5).max())


# %% name="warm_up_curvature"
def highest_curvature():
    """Return the highest curvature of E in 200 random landscapes at β = 16."""
    highest = -np.inf
    for _ in range(200):
        xi, Y = rng.normal(size=4), rng.normal(size=(3, 4))
        covariance = np.cov(Y.T, aweights=softmax(16 * Y @ xi), ddof=0)
        highest = max(highest, np.linalg.eigvalsh(np.eye(4) - 16 * covariance)[-1])
    return highest


# %% name="warm_up_tangent"
def where_the_tangent_is():
    """Compare -lse (β = 4) with its tangent plane at a point, near it and far from it."""
    shifts = np.geomspace(1e-2, 1e2, 50)[:, None] * rng.normal(size=(50, 3))
    plane = -logsumexp(4 * B_Y @ B_xi) / 4 - shifts @ (softmax(4 * B_Y @ B_xi) @ B_Y)
    above = plane + logsumexp(4 * (B_xi + shifts) @ B_Y.T, axis=1) / 4 >= -1e-12
    near = "above near the point only" if above[0] else "below near it only"
    return {0: "nowhere above", 50: "nowhere below"}.get(above.sum(), near)


# %% name="warm_up_check"
check_answers(
    answers,
    {
        "w1": lambda: pick(what_the_slope_is(),
                           a="the token of the highest score", b="the average",
                           c="the softmax average", d="β times (c)"),
        "w2": lambda: pick(highest_curvature(), a=0, b=1, c=16, d=256),
        "w3": lambda: pick(where_the_tangent_is(),
                           a="nowhere below", b="nowhere above",
                           c="above near the point only", d="below near it only"),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# Five words. A **step** of size η leads from $\xi$ to $\xi - \eta\, g$, where $g = \nabla E(\xi)$
# points uphill. A **hop** leads from $\xi$ to the softmax average $a\,Y$, and this place is the
# **landing**. An attention **head** has three matrices $W_Q, W_K, W_V$. It takes tokens as rows
# $x_1, \dots, x_t$ of $X$; the last one, $x_t$, asks, and the output is
#
# $$o = \mathrm{softmax}\big(\beta\; x_t W_Q\, (X W_K)^\top\big)\; X\, W_V.$$
#
# You will compute it a second time, as one hop and then a fixed linear map: the **readout**.
# Commit to an answer for each question. A guess counts. *(5 minutes)*
#
# **q1.** Some step sizes never raise E, whatever the query, the tokens and β. The largest is η =\
# (a) 0.5 · (b) 1 · (c) 2 · (d) 4.
#
# **q2.** You make 1000 random hops. How many of them lower E by less than $\tfrac12\|g\|^2$,
# beyond rounding?\
# (a) 0 · (b) 1 · (c) 50 · (d) 500.
#
# **q3.** Three tokens (1, 0.5), (−0.5, 1.25), (0.25, −1), and β = 1. The query (10, −20) is 22 away
# from the origin. Its landing is away from the origin by\
# (a) 0 · (b) 1.03 · (c) 11 · (d) 22.
#
# **q4.** A head sees a single token, $x_1$. Its output is\
# (a) different for each β · (b) zero · (c) `x_1` · (d) `x_1 W_V`.
#
# **q5.** Twenty random heads in 64 dimensions, each computed directly and as hop and readout. The
# two agree up to a relative difference of, at worst, about\
# (a) 1e-16 · (b) 1e-11 · (c) 1e-6 · (d) 1e-1.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "c", "q2": "a", "q3": "b", "q4": "d", "q5": "b"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, first half: a hop and its promise
#
# The rows of $Y$ are the **centres** of the landscape. So far they were the tokens themselves; in
# the second half they will be what the tokens become for a query. *(10 minutes)*
#
# **Step 1: two halves.** $E = \tfrac12\|\xi\|^2 + (-\mathrm{lse})$. The first half is a bowl, and
# convex. The second is concave, because lse is convex (lesson 1). A sum of two such halves may have
# many valleys, so its minimum is hard to find. Each half alone is easy.
#
# **Step 2: replace the concave half by its tangent plane at ξ.** The plane lies nowhere below it
# (w3), and its slope is $-a\,Y$ (w1). So, for every point ζ,
#
# $$Q(\zeta) \;=\; \tfrac12\|\zeta\|^2 - \mathrm{lse}(\xi) - a\,Y \cdot (\zeta - \xi)
# \;\;\ge\;\; E(\zeta), \qquad Q(\xi) = E(\xi).$$
#
# $Q$ touches E at ξ and lies nowhere below it. It is called the **tangent majoriser** of E at ξ.
#
# **Step 3: jump to the lowest point of Q.** A bowl and a plane have one: $\zeta - a\,Y = 0$. With
# $\xi^+$ for the place where you land,
#
# $$\xi^+ = a\,Y.$$
#
# Convex half kept, concave half made flat, then minimised: this is one step of the
# **concave-convex procedure**, CCCP for short. Its result is the softmax average. It is the hop.
#
# **Step 4: the same place, by the gradient.** $g = \nabla E(\xi) = \xi - a\,Y$, so
# $\xi^+ = \xi - g$. **A hop is a gradient step of size exactly 1.** Nobody chose the 1: the bowl's
# own curvature is 1, and the βs in the gradient of lse have cancelled.
#
# **Step 5: the promise.** Complete the square: $Q(\zeta) = Q(\xi^+) + \tfrac12\|\zeta - \xi^+\|^2$.
# At $\zeta = \xi$ this says $Q(\xi) - Q(\xi^+) = \tfrac12\|g\|^2$. E starts level with Q and ends
# nowhere above it:
#
# $$\boxed{\;E(\xi) - E(\xi^+) \;\ge\; \tfrac12\,\|g\|^2\;}$$
#
# No step size was tuned, and no β is too large. What about other step sizes? See it, further down.

# %% [markdown] name="by_hand"
# ### By hand
#
# Two centres $y_1 = (1, 0)$, $y_2 = (0, 1)$, the query $\xi = (\ln 3, 0)$, and β = 1. Lesson 1
# found the weights $(\tfrac34, \tfrac14)$ and $\mathrm{lse} = \ln 4$.
#
# - Landing: $\tfrac34 (1, 0) + \tfrac14 (0, 1) = (\tfrac34, \tfrac14)$.
# - Gradient: $g = (\ln 3 - \tfrac34,\; -\tfrac14)$, about $(0.349, -0.25)$.
# - The promise: $\tfrac12\|g\|^2$ is about $0.092$.
#
# The next cells give you the energy, draw this hop, and say how far E really falls.


# %% name="given"
def energy(xi, Y, beta):
    """The landscape of lesson 2: a bowl, minus the log-sum-exp of the scores."""
    return 0.5 * xi @ xi - logsumexp(Y @ xi * beta) / beta


def random_landscapes(count, seed):
    """Yield (xi, Y, beta): 1 to 11 centres in 1 to 7 dimensions, β from 0.01 to 100."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, d = rng.integers(1, 12), rng.integers(1, 8)
        yield rng.normal(size=d), rng.normal(size=(n, d)), 10 ** rng.uniform(-2, 2)


# %% name="first_picture"
start, g, etas = np.array([np.log(3), 0]), np.array([np.log(3) - 0.75, -0.25]), np.arange(41) / 20
E = [energy(start - eta * g, np.eye(2), 1.0) for eta in etas]
Q = E[0] - etas * (g @ g) + etas**2 * (g @ g) / 2
words = (
    f"From the query at 0 to its landing at 1 the energy falls by {E[0] - E[20]:.3f}. Its "
    f"majoriser Q lies nowhere below it, and at 1, its lowest point, {Q[0] - Q[20]:.3f} lower."
)
with draw.figure(words=words, size=(7, 4.4)) as (picture, (ax,)):
    draw.draw_path(ax, np.column_stack([etas, E]), "landing", label="energy E")
    draw.draw_path(ax, np.column_stack([etas, Q]), "other", label="majoriser Q")
    draw.draw_points(ax, [0, E[0]], "query", label="query")
    draw.draw_points(ax, [1, E[20]], "landing", label="landing")
    ax.set(xlabel="step size η: the point is ξ − η g", ylabel="height")
    ax.legend()
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Five functions: two for the hop, three for the head. Arrays that you are given must not be
# changed; what you return must be a new array. Everything is compared to about nine digits.
# `softmax` and `logsumexp` are SciPy's, and safe for any score.

# %% [markdown] name="practice_grad"
# ### 1. `energy_grad`: which way is up *(6 minutes)*
#
# $$g = \nabla E(\xi) = \xi - a\,Y$$
#
# An array of shape `(d,)`, like `xi`. The weights $a$ are the softmax of β times the scores,
# shape `(n,)`; the score of a centre is its inner product with the query.
#
# <details><summary>It is right at beta = 1 and wrong at beta = 4</summary>
# Follow β through the gradient of lse. It enters in two places. What is left of it in front?
# </details>
# <details><summary>It says that my input changed</summary>
# <code>xi -= …</code> writes into the array of the caller.
# </details>


# %% nbgrader={"grade_id": "energy_grad", "solution": true}
def energy_grad(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the gradient of the energy, shape (d,). It points uphill.

    xi: query, shape (d,).  Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> energy_grad(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([-0.7616, -0.596 ])
    """
    ### BEGIN SOLUTION
    return xi - softmax(beta * Y @ xi) @ Y
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(energy_grad)

# %% [markdown] name="practice_step"
# ### 2. `cccp_step`: one hop *(5 minutes)*
#
# $$\xi^+ = a\,Y = \xi - g$$
#
# The landing, shape `(d,)`. Take either road: the average, or the gradient that you have just
# written. The other road is then your test.
#
# <details><summary>The landing is too near to the query</summary>
# No cautious step size is needed. Which one makes ξ vanish from the formula?
# </details>
# <details><summary>Should I repeat it until it stands still?</summary>
# No. One step, whatever comes of it. What repeated hops do is lesson 7.
# </details>


# %% nbgrader={"grade_id": "cccp_step", "solution": true}
def cccp_step(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the landing of one hop, shape (d,): the lowest point of the tangent majoriser.

    xi: query, shape (d,).  Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> cccp_step(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([1.7616, 0.596 ])
    """
    ### BEGIN SOLUTION
    return xi - energy_grad(xi, Y, beta)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(cccp_step)

# %% [markdown] name="promise_measured"
# #### Measure the promise
#
# A theorem is a test for programs. The next cell makes 1000 random hops with your functions and
# divides the fall of E by what was promised, $\tfrac12\|g\|^2$. Beyond rounding, no ratio may be
# below 1.

# %% name="promise"
ratios = []
for xi, Y, beta in random_landscapes(1000, seed=1):
    fall = energy(xi, Y, beta) - energy(cccp_step(xi, Y, beta), Y, beta)
    ratios.append(fall / (energy_grad(xi, Y, beta) @ energy_grad(xi, Y, beta) / 2))
for name, value in zip(("least", "median", "most"), np.quantile(ratios, [0, 0.5, 1]), strict=True):
    print(f"{name:6} fall / promise: {value:.6f}")

# %% [markdown] name="model_head"
# ## The model, second half: from the hop to a head
#
# *(8 minutes)*
#
# **Step 6: scores of a head.** $X$ has shape $(n, D)$, one token a row. $W_Q$ and $W_K$ have shape
# $(D, d_k)$, and $W_V$ has shape $(D, d_v)$. Token $x_\tau$ gets the score
#
# $$x_t W_Q\,(x_\tau W_K)^\top \;=\; x_t\, M\, x_\tau^\top, \qquad M = W_Q W_K^\top .$$
#
# **Step 7: centres.** This is the inner product of $x_t$ with the row $y_\tau = x_\tau M^\top$. So
# for the query $\xi = x_t$, token τ stands at the **centre** $y_\tau$; all of them are
# $Y = X M^\top$, shape $(n, D)$. The head's weights are the weights of a landscape with these
# centres.
#
# **Step 8: hop.** The query $x_t$ lands at $a\,Y = (a\,X)\,M^\top$.
#
# **Step 9: readout.** The head wants $(a\,X)\,W_V$. Call the average of the tokens $m = a\,X$. The
# landing is $m M^\top$. So undo $M^\top$, then multiply by $W_V$. Both are fixed: they do not
# depend on the tokens.
#
# $$\boxed{\;\text{one head} \;=\; \text{one hop of } x_t \text{ among the centres}
# \;+\; \text{a fixed linear readout}\;}$$
#
# One condition: $M$ must be invertible, so $d_k$ cannot be smaller than $D$. (There is another
# landscape, in **key space**: $x_t W_Q$ hops among the keys $x_\tau W_K$, and only $W_K$ is to be
# undone. Here we stay in token space.) No β appeared in the readout. For a head the default is
# $\beta = 1/\sqrt{d_k}$: the number of terms in the inner product of query and key.
#
# **By hand.** One dimension: tokens $x_1 = 3$ and $x_2 = 1$, the last one asks. $W_Q = 1$,
# $W_K = \tfrac12$, $W_V = 2$, and $\beta = \ln 3$. Then $M = \tfrac12$ and the centres are
# $\tfrac32$ and $\tfrac12$, which are also the scores. They differ by 1, so one weight is three
# times the other: $a = (\tfrac34, \tfrac14)$.
#
# - Directly: $(\tfrac34 \cdot 3 + \tfrac14 \cdot 1) \cdot 2 = 5$.
# - Hop: $\tfrac34 \cdot \tfrac32 + \tfrac14 \cdot \tfrac12 = \tfrac54$. Readout: undo $\tfrac12$,
#   which gives $\tfrac52$, times 2. Again 5.

# %% [markdown] name="practice_centers"
# ### 3. `token_centers`: tokens as a query sees them *(8 minutes)*
#
# $$Y = X M^\top, \qquad M = W_Q W_K^\top$$
#
# Shape `(n, D)`, one row per token, and no β in it. Do not form $M$, which has $D^2$ entries: two
# thin products give the same. Which two, and in which order?
#
# <details><summary>It raises: shapes not aligned</summary>
# Transpose the product M. Which factor comes first now? Write the shapes under it.
# </details>
# <details><summary>The shape is right, the numbers are not</summary>
# The first place of M belongs to the query, the second to the token. Test one number: the score
# x<sub>t</sub> · y<sub>τ</sub> must be the inner product of a query and a key.
# </details>


# %% nbgrader={"grade_id": "token_centers", "solution": true}
def token_centers(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray) -> np.ndarray:
    """Return the centres of the tokens, one a row, shape (n, D).

    X: tokens as rows, shape (n, D).  W_Q, W_K: query and key weights, shape (D, d_k).

    >>> W_Q, W_K = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [3.0, 1.0]])
    >>> token_centers(np.array([[1.0, 0.0], [0.0, 1.0]]), W_Q, W_K)
    array([[1., 0.],
           [5., 1.]])
    """
    ### BEGIN SOLUTION
    keys = X @ W_K
    return keys @ W_Q.T
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(token_centers)

# %% [markdown] name="practice_output"
# ### 4. `attention_output`: the head, directly *(10 minutes)*
#
# $$o = \mathrm{softmax}\big(\beta\; x_t W_Q\, (X W_K)^\top\big)\; X\, W_V$$
#
# Shape `(d_v,)`: the output at the last position only. All rows of `X` answer, the last one
# included. `beta=None` stands for the default $1/\sqrt{d_k}$; a number must be used as it is.
#
# <details><summary>It is right for some heads and not for others</summary>
# Their shapes differ. Is your default the width of a key, of a token, or of a value?
# </details>
# <details><summary>I get a matrix</summary>
# Only one token asks. How many queries did you make, and how many weights do you have?
# </details>


# %% nbgrader={"grade_id": "attention_output", "solution": true}
def attention_output(
    X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, beta: float | None = None
) -> np.ndarray:
    """Return the output of a head at the last position, shape (d_v,).

    X: tokens as rows, shape (n, D); the last one asks.  W_Q, W_K: shape (D, d_k).
    W_V: shape (D, d_v).  beta: inverse temperature; None means one over the root of d_k.

    >>> X, W_Q, W_K, W_V = (np.array(a) for a in ([[3.0], [1.0]], [[1.0]], [[0.5]], [[2.0]]))
    >>> attention_output(X, W_Q, W_K, W_V, beta=np.log(3)).round(4)
    array([5.])
    """
    ### BEGIN SOLUTION
    if beta is None:
        beta = W_K.shape[1] ** -0.5
    query, keys, values = X[-1] @ W_Q, X @ W_K, X @ W_V
    return softmax(beta * keys @ query) @ values
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(attention_output)

# %% [markdown] name="practice_hop_then_read"
# ### 5. `hop_then_read`: the head, as hop and readout *(12 minutes)*
#
# Here $d_k = D$. Hop with `cccp_step` among the centres, then read out:
#
# $$m M^\top = a\,Y, \qquad o = m\, W_V$$
#
# The first equation has a row on the left of a matrix. `np.linalg.solve(A, b)` solves $A z = b$
# with a column $z$. Transpose the equation, and see which matrix stands where `A` stands. Never
# compute an inverse: a solve is cheaper and loses fewer digits. Now you do form $M$: for scores two
# thin products were enough, but undoing needs M itself.
#
# If M has no inverse, nothing can be read out, and NumPy notices only when it is exactly singular.
# The helper below looks at the **condition number** of M: how many times larger a relative error
# can get when M is undone. So about $\log_{10}$ of it, of 16 digits, may be lost. Call the helper
# before you solve: `check` does not see it, the reader of your project will.
#
# `return attention_output(…)` would pass, too. It would show nothing: you want two roads, so that
# one can test the other.
#
# <details><summary>The shape is right, no example agrees</summary>
# Is it M or its transpose that you undo? Put your m back into the first equation.
# </details>
# <details><summary>The result has D numbers, not d_v</summary>
# Undoing gives an average of tokens. A head answers with an average of values.
# </details>


# %% name="given_helper"
def refuse_singular(M):
    """Raise a ValueError if M is too near to a matrix without inverse."""
    condition = np.linalg.cond(M)
    if not condition <= 1e10:  # so that nan is refused, too
        raise ValueError(f"M cannot be undone: its condition number is {condition:.0e}")


# %% nbgrader={"grade_id": "hop_then_read", "solution": true}
def hop_then_read(
    X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, beta: float | None = None
) -> np.ndarray:
    """Return the output of a head at the last position by one hop and a readout, shape (d_v,).

    X: tokens as rows, shape (n, D); the last one hops.  W_Q, W_K: shape (D, D).
    W_V: shape (D, d_v).  beta: inverse temperature; None means one over the root of d_k.
    Raises ValueError if M = W_Q W_K^T cannot be undone.

    >>> X, W_Q, W_K, W_V = (np.array(a) for a in ([[3.0], [1.0]], [[1.0]], [[0.5]], [[2.0]]))
    >>> hop_then_read(X, W_Q, W_K, W_V, beta=np.log(3)).round(4)
    array([5.])
    """
    ### BEGIN SOLUTION
    if beta is None:
        beta = W_K.shape[1] ** -0.5
    M = W_Q @ W_K.T
    refuse_singular(M)
    landing = cccp_step(X[-1], token_centers(X, W_Q, W_K), beta)
    # Transposed, the row equation m M^T = landing has the matrix M on the left.
    return np.linalg.solve(M, landing) @ W_V
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(hop_then_read)

# %% [markdown] name="two_ways_text"
# #### One head, two ways
#
# Both functions are yours. The next cell draws a random head in 4 dimensions both ways. The one
# after it takes twenty heads each in 2, 8 and 64 dimensions, and looks at the worst. What grows
# with d? Does the error follow it?


# %% name="given_heads"
def random_head(d, seed):
    """Return 16 tokens and the three matrices of a random head in d dimensions."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(16, d)), *(rng.normal(size=(3, d, d)) / np.sqrt(d))


def relative_difference(left, right):
    """Return the largest difference of two arrays, relative to the largest entry of the second."""
    return np.abs(left - right).max() / np.abs(right).max()


# %% name="two_ways"
X, W_Q, W_K, W_V = random_head(4, seed=1)
direct, hopped = attention_output(X, W_Q, W_K, W_V), hop_then_read(X, W_Q, W_K, W_V)
words = (
    "The four numbers of a head's output, computed directly and as hop and readout: pairs of "
    f"equal bars. Their relative difference is {relative_difference(hopped, direct):.0e}."
)
with draw.figure(words=words, size=(7, 4)) as (picture, (ax,)):
    draw.draw_bars(
        ax, direct, "landing", label="directly", slot=(0, 2), names=draw.numbered("o", 4)
    )
    draw.draw_bars(ax, hopped, "other", label="hop and readout", slot=(1, 2))
    ax.set(xlabel="entry of the output", ylabel="value")
    ax.margins(y=0.2)
    ax.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
picture

# %% name="digits"
for d in (2, 8, 64):
    heads = [random_head(d, seed) for seed in range(20)]
    errors = [relative_difference(hop_then_read(*h), attention_output(*h)) for h in heads]
    _, W_Q, W_K, _ = heads[np.argmax(errors)]
    condition = np.linalg.cond(W_Q @ W_K.T)
    print(f"d = {d:2}: worst difference {max(errors):.0e}, in a head of condition {condition:.0e}")

# %% [markdown] name="see_it"
# ## See it
#
# The picture is drawn by *your* `energy_grad` and `cccp_step`. *Energy from above* is the landscape
# of three centres. *Along the arrow* shows E and its majoriser Q: η is the step size, so the query
# is at 0 and the landing at 1. *Energy log* shows E after each of ten steps. In the last two,
# heights are counted from the query's, in units of $\tfrac12\|g\|^2$. In these units the promise is
# always −1. *(15 minutes)*
#
# Three questions, one for each control. Write down what you expect, then move it.
#
# - **query**: move it, by mouse or arrow keys, into a corner, then between two centres. Does the
#   landing ever leave the triangle of the centres? Where is E nearly as high as Q at the landing,
#   and where far below it?
# - **β**: at η = 1 the dotted path is ten hops. Start it at each centre, at β = 1, 2 and 4. If it
#   still moves after ten, go on from its last dot. In how many valleys do hops end? Does their log
#   rise anywhere?
# - **step size η**: up to which η does Q alone guarantee that E has not risen? Go beyond it, into
#   the shaded zone. Find a place where such a step still pays, and one where E rises. What does
#   the log of ten such steps do?
#
# <details><summary>Query</summary>
# Never: weights are positive and sum to 1. From a corner one centre has nearly all of the weight,
# lse is nearly a straight line along the arrow, and E meets Q. Between two centres the weights
# change on the way: at β = 4, a hop from (0.6, −0.3) falls 3.7 units, not 1.
# </details>
# <details><summary>β</summary>
# In one, two, three. At β = 2 one of them, at (0.37, −0.69), is so shallow that no contour closes
# around it; hops from y₁ end in the other. The log of the hops never rises.
# </details>
# <details><summary>Step size: why just there?</summary>
# Along the arrow Q is a parabola with its lowest point at the landing. It is back at its first
# height at twice the way. Up to η = 2 E lies under a Q that has not risen; beyond, nothing holds
# it.
# </details>

# %% name="explore"
explore.hop_and_majoriser(energy, energy_grad, cccp_step)

# %% [markdown] name="step_sizes_text"
# Size 1 is the best that Q can promise, and not the only safe one. The next cell counts how often a
# step along your gradient raises E, in 500 random landscapes. Beyond 2 the shares depend on which
# landscapes are drawn; up to 2 they do not.


# %% name="step_sizes"
def share_that_rise(eta, count=500):
    """Return the share of random steps of size eta after which E is higher than before."""
    rises = 0
    for xi, Y, beta in random_landscapes(count, seed=2):
        before = energy(xi, Y, beta)
        after = energy(xi - eta * energy_grad(xi, Y, beta), Y, beta)
        rises += after > before + 1e-12 * (1 + abs(before))  # beyond rounding
    return rises / count


for eta in (0.1, 1.0, 1.9, 2.0, 2.1, 2.5, 4.0):
    print(f"η = {eta}: {share_that_rise(eta):6.1%} of the steps raise E")

# %% [markdown] name="claim"
# ## Find the bug
#
# > *"I logged the energy at every hop, and it rises. So attention does not descend."*
#
# The next cell is this person's program, on your hop. It really rises. Your theorem forbids that,
# so either the hop is wrong or the energy is. Find out which, by numbers. *(10 minutes)*
#
# 1. Make 300 hops, `random_landscapes(300, seed=3)`. Count how often `logged_energy` rises by more
#    than 1e-9: `logged_rises`. Count the same for `energy`: `energy_rises`.
# 2. Look into the program. For β = 1, 2, 4, 16, in this order, list `offsets`:
#    `logged_energy(A_xi, A_Y, beta)` minus `energy(A_xi, A_Y, 1.0)`. Do you know these numbers?
# 3. Write your verdict: `culprit = "hop"` or `culprit = "energy"`.
#
# <details><summary>The offsets mean nothing to me</summary>
# Try another query: do they change? If not, the two landscapes have the same shape. Then look up
# what the argument b of logsumexp multiplies.
# </details>


# %% name="claim_program"
def logged_energy(xi, Y, beta):
    """The energy, as the author of the claim wrote it: β goes into logsumexp by its argument b."""
    return 0.5 * xi @ xi - logsumexp(Y @ xi, b=beta)


A_xi = np.array([0.75, -0.5])
A_Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]])
place = A_xi
for hop in range(4):
    print(f"after {hop} hops, at β = 16: {logged_energy(place, A_Y, 16.0):.4f}")
    place = cccp_step(place, A_Y, 16.0)

# %% nbgrader={"grade_id": "claim_measurement", "solution": true}
logged_rises, energy_rises = None, None  # two counts
offsets = None  # a list of four numbers
culprit = None  # "hop" or "energy"
### BEGIN SOLUTION
logged_rises = energy_rises = 0
for xi, Y, beta in random_landscapes(300, seed=3):
    landing = cccp_step(xi, Y, beta)
    logged_rises += logged_energy(landing, Y, beta) > logged_energy(xi, Y, beta) + 1e-9
    energy_rises += energy(landing, Y, beta) > energy(xi, Y, beta) + 1e-9
offsets = [logged_energy(A_xi, A_Y, b) - energy(A_xi, A_Y, 1.0) for b in (1, 2, 4, 16)]
culprit = "energy"
### END SOLUTION


# %% name="claim_given"
def rises(height):
    """Count the hops, of 300, after which this height is higher than before."""
    hops = ((x, cccp_step(x, Y, b), Y, b) for x, Y, b in random_landscapes(300, seed=3))
    return sum(height(end, Y, b) - height(x, Y, b) > 1e-9 for x, end, Y, b in hops)


def agree(value, right):
    """Say whether two words are the same, or two numbers or lists of them up to rounding."""
    if isinstance(value, str) or isinstance(right, str):
        return value == right
    return np.shape(value) == np.shape(right) and np.allclose(value, right, rtol=0, atol=1e-6)


# %% name="claim_check"
in_log, in_energy = rises(logged_energy), rises(energy)
for name, value, right in (
    ("logged_rises", logged_rises, in_log),
    ("energy_rises", energy_rises, in_energy),
    ("offsets", offsets, [-np.log(beta) for beta in (1, 2, 4, 16)]),
    ("culprit", culprit, "energy" if in_energy == 0 < in_log else "hop"),
):
    written = "not written yet" if value is None or np.size(value) == 0 else value
    shown = written if isinstance(written, str) else np.round(written, 4) + 0
    mark = "" if written is not value else "✓" if agree(value, right) else "✗"
    print(f"{name:13}", shown, mark)

# %% [markdown] name="claim_settled"
# <details><summary>What is true</summary>
#
# The hop is right, and the log is not the energy. `b` multiplies each exponential:
# $\ln \sum_\tau \beta\, e^{s_\tau} = \ln\beta + \ln \sum_\tau e^{s_\tau}$. So β never reaches an
# exponent, and what is logged is the landscape of β = 1, moved down by $\ln\beta$. A hop at β = 16
# descends on its own landscape, and owes nothing to another one. The values looked plausible; only
# the promise of the theorem gave them away.
#
# </details>

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Scroll so that the theory is out of sight. Answer in your own words, in the cell below, then open
# the answers. *(5 minutes)*
#
# 1. What is the tangent majoriser of E at ξ, and what are its two properties?
# 2. When does a hop lower E by exactly $\tfrac12\|g\|^2$?
# 3. Which matrix does the readout undo?

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. The bowl plus the tangent plane of −lse at ξ. It touches E at ξ, and lies nowhere below E. The
#    same trick makes a hop of another kernel descend in lesson 5.
# 2. When E meets Q at the landing: when lse is a straight line between the query and its landing.
#    For example with one centre, or when the query is at rest ($g = 0$); queries far out nearly
#    reach it. In lesson 4, $\tfrac12\|g\|^2$ is one of the three parts of a drop.
# 3. $M^\top$ with $M = W_Q W_K^\top$, which turned tokens into centres. What is left of it when M
#    has no inverse is not part of this course.
#
# </details>
#
# And your predictions? The next cells measure all five with your functions.


# %% name="measure"
def largest_safe_step():
    """Return the largest step size tried that raised no energy, 0.01 if all of them did."""
    sizes = (0.5, 1.0, 2.0, 2.1, 4.0)
    return max((eta for eta in sizes if share_that_rise(eta, 200) == 0), default=0.01)


def broken_promises():
    """Count the hops out of 1000 that lower E by less than half the squared gradient."""
    broken = 0
    for xi, Y, beta in random_landscapes(1000, seed=4):
        before, g = energy(xi, Y, beta), energy_grad(xi, Y, beta)
        after = energy(cccp_step(xi, Y, beta), Y, beta)
        broken += before - after < g @ g / 2 - 1e-12 * (1 + abs(before))  # beyond rounding
    return broken


# %% name="measure_head"
def worst_of_twenty():
    """Return the worst relative difference over 20 heads, from 1e-16 (one rounding) to 1."""
    heads = [random_head(64, seed) for seed in range(20)]
    apart = [relative_difference(hop_then_read(*h), attention_output(*h)) for h in heads]
    return np.clip(np.nan_to_num(max(apart), nan=1.0), 1e-16, 1.0)


def output_of_one_token():
    """Say what a head makes of a single token, at three temperatures."""
    X, *W = random_head(3, 0)
    outputs = np.array([attention_output(X[:1], *W, beta) for beta in (0.1, 1.0, 50.0)])
    if not np.allclose(outputs, outputs[0]):
        return "different for each β"
    named = {"zero": np.zeros(3), "x_1": X[0], "x_1 W_V": X[0] @ W[2]}
    return min(named, key=lambda name: np.abs(outputs[0] - named[name]).max())


# %% name="reveal"
reveal(
    prediction,
    {
        "q1": lambda: pick(largest_safe_step(), a=0.5, b=1, c=2, d=4),
        "q2": lambda: pick(broken_promises(), a=0, b=1, c=50, d=500),
        "q3": lambda: pick(np.linalg.norm(cccp_step(np.array([10.0, -20.0]), A_Y, 1.0)),
                           a=0, b=1.03, c=11, d=22),
        "q4": lambda: pick(output_of_one_token(),
                           a="different for each β", b="zero", c="x_1", d="x_1 W_V"),
        "q5": lambda: pick(worst_of_twenty(), a=1e-16, b=1e-11, c=1e-6, d=1e-1),
    },
)  # fmt: skip

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: replace a head by hops *(40 minutes)*
#
# Take a head out of a model and put hops in its place. Write `hop_block`: for **every** position t,
# the token $x_t$ hops among the centres of the tokens $x_1, \dots, x_t$, never later ones, and is
# read out. It also logs the energy of each hop, before and after, in the landscape of position t.
# The check below judges the outputs and the log.
#
# Then write the cell after it, and the report. Take 100 heads, `random_head(8, seed)` with the
# seeds 0–99, and set your block beside `attention_output`, each position separately.
#
# - How large is the worst relative difference? Which head has it, and what does the condition
#   number of its M say about that?
# - Compare each fall in the log with $\tfrac12\|g\|^2$. Then let the hops use 2β, and the log β.
#   Would rises alone show it?
# - Copy one row of $W_Q$ onto another. What does your block do with such a head?
#
# | read by a person | points |
# |---|---|
# | measurement: worst relative difference, of all heads and positions, at most 1e-10 | 1 |
# | measurement: each fall beside $\tfrac12\|g\|^2$, and a head with equal rows is refused | 1 |
# | program: a linear solve, no explicit inverse, and no tokens of the future | 1 |
# | report: the error is related to the condition number, by a table or a plot | 2 |
# | report: says why the log cannot rise, and which comparison shows a hop with the wrong β | 1 |


# %% nbgrader={"grade_id": "hop_block", "solution": true}
def hop_block(
    X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, beta: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs at all positions, (n, d_v), and the energies around each hop, (n, 2).

    The row of position t holds the energy of x_t before its hop and of its landing after it, in
    the landscape of the centres of x_1 to x_t.

    X: tokens as rows, shape (n, D).  W_Q, W_K: shape (D, D).  W_V: shape (D, d_v).
    beta: inverse temperature; None means one over the root of d_k.

    >>> X, W_Q, W_K, W_V = (np.array(a) for a in ([[3.0], [1.0]], [[1.0]], [[0.5]], [[2.0]]))
    >>> outputs, energies = hop_block(X, W_Q, W_K, W_V, beta=np.log(3))
    >>> outputs.round(4)
    array([[6.],
           [5.]])
    >>> energies.round(4)
    array([[ 0.    , -1.125 ],
           [-1.2619, -1.2992]])
    """
    ### BEGIN SOLUTION
    if beta is None:
        beta = W_K.shape[1] ** -0.5
    M, Y = W_Q @ W_K.T, token_centers(X, W_Q, W_K)
    refuse_singular(M)
    landings = [cccp_step(x, Y[: t + 1], beta) for t, x in enumerate(X)]
    energies = [
        [energy(point, Y[: t + 1], beta) for point in (X[t], landings[t])] for t in range(len(X))
    ]
    return np.linalg.solve(M, np.transpose(landings)).T @ W_V, np.array(energies)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(hop_block)

# %% nbgrader={"grade_id": "project_sweep", "solution": true}
# Your measurements: 100 heads, differences, conditions, falls and promises, one refusal.
### BEGIN SOLUTION
worst, conditions, falls = [], [], []
for seed in range(100):
    X, W_Q, W_K, W_V = random_head(8, seed)
    outputs, energies = hop_block(X, W_Q, W_K, W_V)
    direct = [attention_output(X[: t + 1], W_Q, W_K, W_V) for t in range(len(X))]
    worst.append(max(map(relative_difference, outputs, direct)))
    conditions.append(np.linalg.cond(W_Q @ W_K.T))
    Y, beta = token_centers(X, W_Q, W_K), 8**-0.5
    for t, x in enumerate(X):
        seen = Y[: t + 1]
        g, wrong = energy_grad(x, seen, beta), cccp_step(x, seen, 2 * beta)
        by_wrong = energies[t, 0] - energy(wrong, seen, beta)
        falls.append((energies[t, 0] - energies[t, 1], by_wrong, g @ g / 2))
print(f"worst relative difference {max(worst):.0e}, condition {conditions[np.argmax(worst)]:.0e}")
right, wrong, promised = np.transpose(falls)
for name, fall in (("β", right), ("2β", wrong)):
    short = (fall < promised - 1e-9).sum()
    print(f"hop at {name}: of {len(fall)} {(fall < -1e-9).sum()} rise, {short} fall too little")
W_Q[1] = W_Q[0]
try:
    hop_block(X, W_Q, W_K, W_V)
except ValueError as error:
    print("refused:", error)
with draw.figure(
    words="Each point is a head. The worse the condition of M, the more digits the "
    "readout loses: the cloud rises to the right.",
    size=(7, 4.4),
) as (picture, (ax,)):
    draw.draw_points(ax, np.column_stack([conditions, worst]), "ink")
    ax.set(xscale="log", yscale="log", xlabel="condition number of M", ylabel="worst difference")
picture
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# The two ways agree to rounding times the condition number of M: about 1e-16 times the number on
# the horizontal axis, so the cloud follows a line of slope 1. The solve with M is where the digits
# are lost; β, the hop and $W_V$ lose none to speak of. No logged energy rises, because each hop
# goes to the lowest point of a majoriser of the very landscape in which it is logged, and falls by
# at least half the squared gradient. Hops at 2β, logged at β, do not rise either: a log without
# rises proves little. But many of them fall by less than half the squared gradient, and that shows
# the wrong β. With a singular M different tokens have the same centre, and nothing can tell them
# apart again: such a head is refused.
# ### END SOLUTION

# %% [markdown] name="limits"
# ## What was not shown
#
# - One head, before its output matrix, the residual connection and the norm. What it adds to the
#   token is not the landing.
# - An invertible M. Real heads have $d_k$ much smaller than $D$, and their M has no inverse.
# - One hop. Where repeated hops settle, and how far that is from one hop, is lesson 7.
# - The bowl $\tfrac12\|\xi\|^2$. With another bowl $\tfrac12\, \xi B \xi^\top$ the lowest point of
#   the majoriser is $a\,Y B^{-1}$. It descends as well, but it is no gradient step of size 1 any
#   more.
#
# **Read on.** A. L. Yuille and A. Rangarajan, *The concave-convex procedure*, Neural Computation 15
# (2003), 915–936: the method, in general. H. Ramsauer and others, *Hopfield networks is all you
# need*, ICLR 2021 (arXiv 2008.02217): the hop as one step of it, and as attention. A. Vaswani and
# others, *Attention is all you need*, NeurIPS 2017 (arXiv 1706.03762): the head. D. R. Hunter and
# K. Lange, *A tutorial on MM algorithms*, The American Statistician 58 (2004): majorisers of many
# kinds.
