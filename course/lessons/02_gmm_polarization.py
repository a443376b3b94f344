# %% [markdown] name="challenge"
# # 2 · The bowl turns lse into a Gaussian mixture
#
# $-$lse falls for ever. Add a bowl, and there is a floor: a landscape with valleys. You will often
# hear that it has one valley for each token. **How many valleys does it have?**
#
# When you are done you can
#
# - write the energy of attention in two ways, and say when to use which,
# - read the attention weights as probabilities of a mixture,
# - tell a *component* from a *valley*, and say when there are fewer, or more, valleys than tokens,
# - count valleys.
#
# **Time** just under two hours, and 45 minutes for the project. **You need** log-sum-exp, softmax,
# and the gradient and curvature of lse (lesson 1). What you wrote there now comes from SciPy.

# %% name="imports"
import itertools

import numpy as np
from scipy.special import logsumexp, softmax

from hopping import check, check_answers, commit, draw, explore, pick, reveal

# %% [markdown] name="warm_up"
# ## Warm up
#
# From lesson 1. Write a letter for each, then run both cells. *(3 minutes)*
#
# **w1.** The query moves. With weights $a$, and at β = 2, the gradient of lse is $aY$ times\
# (a) 0.5 · (b) 1 · (c) 2 · (d) 4.
#
# **w2.** You add 3 to every score, at β = 2. Then lse grows by\
# (a) 0 · (b) 1.5 · (c) 3 · (d) 6.
#
# **w3.** Along any straight line, the curvature of lse is\
# (a) never negative · (b) never positive · (c) always 0 · (d) of either sign.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "b", "w2": "c", "w3": "a"}
### END SOLUTION

# %% name="warm_up_check"
rows = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])


def lse_2(xi, shift=0.0):
    """Return lse at β = 2, with a shift added to every score."""
    return logsumexp(2 * (rows @ xi + shift)) / 2


def slope_in_units_of_the_average(xi, h=1e-5):
    """Return the slope of lse along the first axis, divided by the same entry of aY."""
    step = np.array([h, 0.0])
    slope = (lse_2(xi + step) - lse_2(xi - step)) / (2 * h)
    return slope / (softmax(2 * rows @ xi) @ rows)[0]


def signs_of_bends(count=200):
    """Say which signs the second difference of lse takes on random lines."""
    ends = np.random.default_rng(1).normal(size=(count, 2, 2))
    bends = [lse_2(p + 0.1 * q) - 2 * lse_2(p) + lse_2(p - 0.1 * q) for p, q in ends]
    return "never negative" if min(bends) > -1e-12 else "of either sign"


# %% name="warm_up_reply"
check_answers(
    answers,
    {
        "w1": lambda: pick(slope_in_units_of_the_average(np.array([0.3, -0.2])),
                           a=0.5, b=1, c=2, d=4),
        "w2": lambda: pick(lse_2(np.ones(2), 3.0) - lse_2(np.ones(2)), a=0, b=1.5, c=3, d=6),
        "w3": lambda: pick(signs_of_bends(), a="never negative", b="never positive",
                           c="always 0", d="of either sign"),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# In this lesson a token, a row of $Y$, is called a **centre**. The **energy** of a query $\xi$ is
#
# $$E(\xi) = \tfrac12 \lVert \xi \rVert^2 - \mathrm{lse}(\xi):$$
#
# a bowl minus lse. A **valley** is a local minimum of $E$: a point from which every small step
# leads up. Commit to an answer for each question; being wrong costs nothing. *(5 minutes)*
#
# **q1.** Two centres on a line, at +0.5 and −0.5. While β is small there is one valley. It splits
# into two at β =\
# (a) 1 · (b) 2 · (c) 4 · (d) 8.
#
# **q2.** The energy will turn out to be made of bumps, one on each centre; longer centres have
# higher bumps. One centre has length 8.8, another 8. At β = 1 the first bump is higher by a factor
# of\
# (a) 1.1 · (b) 2.3 · (c) 29 · (d) 829.
#
# **q3.** Three centres at the corners of an equilateral triangle, each of length 1. At β = 1.9 the
# number of valleys is\
# (a) 1 · (b) 2 · (c) 3 · (d) 4.
#
# **q4.** Eight random centres of length 1 in 64 dimensions. β is the usual one of attention,
# $1/\sqrt{64}$. The number of valleys is\
# (a) 0 · (b) 1 · (c) 4 · (d) 8.
#
# **q5.** 32 random centres in the plane (normally distributed), and β grows without bound. The
# share of centres that end up with a valley of their own is\
# (a) 2 % · (b) 16 % · (c) 50 % · (d) 100 %.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "c", "q2": "d", "q3": "d", "q4": "b", "q5": "b"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, in five small steps
#
# *(20 minutes, with the example by hand)*
#
# **Step 1: a bowl.** lse grows at most like $R\,\lVert\xi\rVert$, with $R$ the length of the
# longest centre. The bowl $\tfrac12\lVert\xi\rVert^2$ grows faster, so $E$ has a floor:
#
# $$E(\xi) \;\ge\; -\tfrac12 R^2 - \frac{\ln n}{\beta}.$$
#
# **Step 2: polarisation.** Expand $\lVert\xi-y\rVert^2 = \lVert\xi\rVert^2 - 2\,\xi\cdot y +
# \lVert y\rVert^2$ and solve for the product. A score becomes three squares (**polarisation**):
#
# $$\xi\cdot y = \tfrac12\lVert\xi\rVert^2 - \tfrac12\lVert\xi-y\rVert^2 +
# \tfrac12\lVert y\rVert^2.$$
#
# **Step 3: the bowl is used up.** Put this into lse. The first square is the same for all centres,
# and a common shift of the scores comes out of lse as it is (lesson 1). The bowl minus lse cancels
# it. What is left:
#
# $$E(\xi) = -\frac1\beta \ln \sum_\tau \pi_\tau\, e^{-\beta\lVert\xi-y_\tau\rVert^2/2},
# \qquad \pi_\tau = e^{\beta\lVert y_\tau\rVert^2/2}.$$
#
# Each term is a **component**: a Gaussian bump on one centre, of width $1/\sqrt\beta$, scaled by
# its **mixture weight** $\pi_\tau$. The $\pi_\tau$ do not sum to 1.
#
# **Step 4: a density.** Without $\pi_\tau$, each bump has the volume $(2\pi/\beta)^{d/2}$. (In
# $2\pi$ it is the number 3.14…, everywhere else a mixture weight.) Divide by the volume of all,
# and the sum becomes a probability density $p$, a **Gaussian mixture**:
#
# $$p(\xi) = \Big(\frac{\beta}{2\pi}\Big)^{d/2} \sum_\tau \frac{\pi_\tau}{\sum_\sigma \pi_\sigma}\,
# e^{-\beta\lVert\xi-y_\tau\rVert^2/2}.$$
#
# So $-\frac1\beta \ln p$ is $E$ up to a constant: a probable query is a low query. To draw a query
# from $p$, draw τ with probability $\pi_\tau/\sum_\sigma\pi_\sigma$, then a point from the Gaussian
# around $y_\tau$. Given $\xi$, the **posterior** probability that it came from component τ is
# that component's share of the sum. By step 2 each term of the sum is $e^{\beta\,\xi\cdot y_\tau}$
# times a common factor, which cancels: **the posterior is the attention weight $a_\tau$.**
#
# **Step 5: valleys.** By lesson 1, with $m = aY$,
#
# $$\nabla E = \xi - aY, \qquad
# \nabla^2 E = I - \beta \sum_\tau a_\tau\,(y_\tau-m)^\top(y_\tau-m).$$
#
# A point is **flat** where $\xi = aY$: it is its own average. A flat point is a valley when the
# curvature $\nabla^2 E$ has only positive eigenvalues, and none when one is negative. Exactly at a
# split an eigenvalue is 0, and this test decides nothing. For small β the bowl's 1 wins in every
# direction, and there is one valley, however many components.

# %% [markdown] name="by_hand"
# ### By hand
#
# In one dimension, centres $y_1 = 1$ and $y_2 = 0$, and β = 2 ln 3, so that $e^{\beta/2} = 3$.
#
# - Mixture weights: $(\pi_1, \pi_2) = (e^{\beta/2},\, e^0) = (3, 1)$. A centre at the origin always
#   has the weight 1.
# - At $\xi = 0$: lse is $\ln(1 + 1)/\beta$, so $E = -\ln 2/\beta$. By bumps: $3 \cdot \tfrac13 + 1
#   \cdot 1 = 2$. The same.
# - At $\xi = \tfrac12$, halfway: both bumps have fallen by the same factor, so the posterior is
#   $(\pi_1, \pi_2)/4 = (\tfrac34, \tfrac14)$. **Equally near is not equally probable.**
#
# Two centres at $\pm r$: in the middle $a = (\tfrac12, \tfrac12)$, the average is 0, the spread is
# $r^2$. The curvature there is $1 - \beta r^2$. It turns negative at $\beta = 1/r^2$: the valley in
# the middle becomes a hill, with a valley on each side.

# %% name="first_picture"
with draw.figure(
    ncols=2,
    words="Centres at 1 and 0, weights 3 and 1. Left: the bowl minus lse is the energy, measured "
    "from its value at 0. Right: two bumps add up to a single peak. Two components, one valley.",
) as (picture, (left, right)):
    x, beta = np.linspace(-1.5, 2.5, 161), 2 * np.log(3)
    fall = -(np.logaddexp(beta * x, 0.0) - np.log(2)) / beta
    for heights, role, label in (
        (x**2 / 2, "ink", "bowl"), (fall, "other", "−lse"), (x**2 / 2 + fall, "landing", "energy")
    ):  # fmt: skip
        draw.draw_path(left, np.column_stack([x, heights]), role, label=label)
    left.set(xlabel="ξ", ylabel="height", ylim=(-2, 2))
    draw.draw_mixture(right, x, [3 * np.exp(-beta * (x - 1) ** 2 / 2), np.exp(-beta * x**2 / 2)])
    left.legend(), right.legend()
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Five functions. SciPy's `logsumexp` and `softmax` do what yours did in lesson 1: they never
# overflow, and they know nothing of β. `np.logaddexp.reduce(v)` is the log-sum-exp of a vector
# too, and faster: with it in `energy` the pictures move more smoothly. Do not change what you are
# given.

# %% [markdown] name="practice_energy"
# ### 1. `energy`: bowl minus lse *(6 minutes)*
#
# $$E(\xi) = \tfrac12 \lVert \xi \rVert^2 - \mathrm{lse}(\xi), \qquad
# \mathrm{lse}(\xi) = \frac1\beta \ln \sum_\tau e^{\beta\, y_\tau\cdot\xi}$$
#
# `xi` has shape `(d,)`, `Y` has shape `(n, d)`, the result is one number in units of a score.
#
# <details><summary>Only the examples with beta = 1 pass</summary>
# Two places want a β inside lse, and the bowl wants none.
# </details>
# <details><summary>I get a large positive number where a negative one is expected</summary>
# A query that agrees with a centre should lie low. Which of the two terms rewards agreement?
# </details>


# %% nbgrader={"grade_id": "energy", "solution": true}
def energy(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the energy of a query, bowl minus log-sum-exp, in units of a score.

    xi: query, shape (d,).  Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> round(float(energy(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0)), 4)
    -1.6269
    """
    ### BEGIN SOLUTION
    return xi @ xi / 2 - np.logaddexp.reduce(beta * (Y @ xi)) / beta
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(energy)

# %% [markdown] name="practice_log_weights"
# ### 2. `log_mixture_weights`: how high is each bump? *(5 minutes)*
#
# $$\ln \pi_\tau = \tfrac12\,\beta\,\lVert y_\tau \rVert^2$$
#
# One natural logarithm for each *centre*, shape `(n,)`, not normalised. `exp` overflows above 709,
# which at β = 1 a centre of length 37.7 reaches. So stay in logarithms until the end.
#
# <details><summary>I get two numbers for three centres</summary>
# Which axis of Y counts the coordinates of one centre? That is the one to sum over.
# </details>


# %% nbgrader={"grade_id": "log_mixture_weights", "solution": true}
def log_mixture_weights(Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the logarithm of each mixture weight, shape (n,), not normalised.

    Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> log_mixture_weights(np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0)
    array([ 2. , 12.5])
    """
    ### BEGIN SOLUTION
    return beta * (Y**2).sum(axis=1) / 2
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(log_mixture_weights)

# %% [markdown] name="practice_gmm"
# ### 3. `energy_gmm`: the same number, by bumps *(10 minutes)*
#
# $$E(\xi) = -\frac1\beta \ln \sum_\tau e^{\ln\pi_\tau \,-\, \beta\lVert\xi-y_\tau\rVert^2/2}$$
#
# Go by the bumps, not by the scores: the cell after the check tests whether both roads meet. Form
# the whole exponent of each component first, shape `(n,)`, then one log-sum-exp. `xi - Y` is the
# query minus every row.
#
# <details><summary>It differs from energy, by the same amount at every query</summary>
# Were the weights normalised, or the volume of a bump divided out? That is step 4.
# </details>
# <details><summary>It is right when all centres have the same length, up to a constant</summary>
# What tells a long centre from a short one?
# </details>
# <details><summary>I get inf or nan for large centres</summary>
# π is huge and the bump is tiny. Their logarithms are two ordinary numbers: add them.
# </details>


# %% nbgrader={"grade_id": "energy_gmm", "solution": true}
def energy_gmm(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the energy of a query by way of the mixture, in units of a score.

    xi: query, shape (d,).  Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> round(float(energy_gmm(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0)), 4)
    -1.6269
    """
    ### BEGIN SOLUTION
    squares = ((xi - Y) ** 2).sum(axis=1)
    return -logsumexp(log_mixture_weights(Y, beta) - beta * squares / 2) / beta
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(energy_gmm)

# %% [markdown] name="two_roads"
# #### Two roads, one number?
#
# In exact arithmetic, yes. The next cell makes the centres longer and the query shorter, so that
# the scores stay as they are. Which road would you compute with, and why? Answer, then open the
# lines below the cell. *(3 minutes)*

# %% name="two_roads_measured"
rng = np.random.default_rng(2)
xi, Y = rng.normal(size=3), rng.normal(size=(4, 3))
for size in (1.0, 1e2, 1e4, 1e6, 1e8):
    apart = abs(energy(xi / size, Y * size, 1.0) - energy_gmm(xi / size, Y * size, 1.0))
    print(f"centres of size {size:5.0e}: the two differ by {apart:.0e}")
if apart < 1e-9:
    print("As good as 0 everywhere: one road twice. Write energy_gmm by the bumps.")

# %% [markdown] name="two_roads_said"
# <details><summary>Which road?</summary>
# The mixture adds and subtracts ‖y‖²/2. When that is huge, the digits of the score are lost
# between the two. <b>Think in bumps, compute with lse.</b>
# </details>

# %% [markdown] name="practice_posterior"
# ### 4. `posterior`: who made this query? *(8 minutes)*
#
# $$P(\tau \mid \xi) = \frac{\pi_\tau\, e^{-\beta\lVert\xi-y_\tau\rVert^2/2}}
# {\sum_\sigma \pi_\sigma\, e^{-\beta\lVert\xi-y_\sigma\rVert^2/2}}$$
#
# One probability for each component, shape `(n,)`, together 1. Go by the bumps, not by the scores:
# the cell after the check measures whether the two agree.
#
# <details><summary>The nearest centre always wins</summary>
# By hand, halfway between the centres, it was 3 to 1. Where did the 3 come from?
# </details>
# <details><summary>My probabilities are negative</summary>
# Then they are logarithms.
# </details>


# %% nbgrader={"grade_id": "posterior", "solution": true}
def posterior(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the probability of each component given the query, shape (n,), sum 1.

    xi: query, shape (d,).  Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> posterior(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0).round(4)
    array([0.8808, 0.1192])
    """
    ### BEGIN SOLUTION
    squares = ((xi - Y) ** 2).sum(axis=1)
    return softmax(log_mixture_weights(Y, beta) - beta * squares / 2)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(posterior)

# %% name="posterior_is_attention"
for beta in (0.01, 1.0, 4.0):
    difference = np.abs(posterior(xi, Y, beta) - softmax(beta * Y @ xi)).max()
    print(f"beta {beta:4}: posterior and attention weights differ by {difference:.0e}")
if np.abs(posterior(xi / 1e8, Y * 1e8, 1.0) - softmax(Y @ xi)).max() < 1e-9:
    print("No digits are lost for long centres: one road twice. Go by the bumps.")

# %% [markdown] name="practice_density"
# ### 5. `log_density`: a density at last *(10 minutes)*
#
# $$\ln p(\xi) = \ln \sum_\tau \pi_\tau\, e^{-\beta\lVert\xi-y_\tau\rVert^2/2}
# \;-\; \ln \sum_\sigma \pi_\sigma \;-\; \frac d2 \ln \frac{2\pi}{\beta}$$
#
# One number, without unit; $d$ is the number of coordinates of ξ. The first term you have met in
# `energy_gmm`. The density $p$ integrates to 1 over all queries, and the next cell will try it.
#
# <details><summary>It integrates to 1 in one dimension but not in two</summary>
# A bump has a width in each coordinate.
# </details>
# <details><summary>It is right at beta = 1 only</summary>
# Is a bump wide or narrow when β is large? Its variance is 1/β.
# </details>


# %% nbgrader={"grade_id": "log_density", "solution": true}
def log_density(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the log of the mixture density, which integrates to 1 over all queries.

    xi: query, shape (d,).  Y: centres as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> round(float(log_density(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 5.0]]), 1.0)), 4)
    -12.711
    """
    ### BEGIN SOLUTION
    log_pi = log_mixture_weights(Y, beta)
    log_bumps = log_pi - beta * ((xi - Y) ** 2).sum(axis=1) / 2
    return logsumexp(log_bumps) - logsumexp(log_pi) - len(xi) / 2 * np.log(2 * np.pi / beta)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(log_density)

# %% name="density_on_a_grid"
line, beta = np.array([[1.0], [-0.5], [0.25]]), 4.0
grid, width = np.linspace(-6, 6, 601, retstep=True)
logs = np.array([log_density(np.array([x]), line, beta) for x in grid])
gaps = np.array([energy(np.array([x]), line, beta) for x in grid]) + logs / beta
print(f"the density sums to {np.exp(logs).sum() * width:.9f} over the grid")
print(f"energy + log density / beta lies between {gaps.min():.9f} and {gaps.max():.9f}")

# %% [markdown] name="see_it"
# ## See it
#
# Four pictures, drawn by *your* functions. Before you move a control, write down what you expect.
# Stars are valleys, found with your `posterior`. In *How many valleys, up to β* the count is drawn
# only as far as β has come.
#
# ### Two centres, at $c - r$ and $c + r$ *(8 minutes)*
#
# - **β**: move it up from 0.5. Which of bowl and −lse changes its shape? Where do you see the split
#   first?
# - **r**: make it half as large. By what factor must β grow before the valley splits?
# - **c**: move both centres to the right. Now their lengths differ. Which bump grows? Is the split
#   still at $1/r^2$? Take r = 0.5: where does the split go as c comes near 0.5, that is, the left
#   centre near the origin? (The picture ends at β = 20.7. A split beyond it does not show.)

# %% name="explore"
explore.two_centres(energy, log_mixture_weights, posterior)

# %% [markdown] name="see_triangle"
# ### Three centres *(6 minutes)*
#
# An equilateral triangle. *Energy from the mean (0) to y₁ (1)* is a cut through the landscape, from
# the mean of the centres to $y_1$. Its heights are a thousand times those of the energy, measured
# from the mean.
#
# - **β**: go from 1.7 to 2.1. Write down the number of valleys as it changes. Which valley is the
#   one too many, and which centre does it belong to? How high is the ridge around it?
# - **push y₁**: at β = 1.9, move $y_1$ outwards, then inwards, with the arrow keys on the slider
#   (0.0005 a step). How far can it go before a valley is lost, and which one is it?

# %% name="explore_triangle"
triangle = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
explore.valleys(
    energy, posterior, triangle, 1.75, beta_range=(1.7, 2.1), step=0.005, heights=(-0.003, 0.003),
    push=0.02,
)  # fmt: skip

# %% [markdown] name="see_unequal"
# ### Two centres of unequal length *(3 minutes)*
#
# - **β**: their distance says $1/r^2 = 1.561$. Pass it: what do you expect, and what is missing?
#   Go on until there is a second valley. Which centre gets its valley last?

# %% name="explore_unequal"
unequal = np.array([[1.0, 0.0], [0.0, 1.25]])
explore.valleys(energy, posterior, unequal, 1.0, beta_range=(0.5, 16), heights=(-0.2, 0.2))

# %% [markdown] name="see_shadow"
# ### In the shadow *(4 minutes)*
#
# - **β**: go to 1024. Does $y_1$ ever get a valley?
# - **centres**: now move $y_1$ until it gets one. Compare the scores $y_1\cdot y_1$ and
#   $y_1\cdot y_2$ below the picture, before and after. A centre lies in the **shadow** of another
#   one when that one's score with it is at least as large as its own.

# %% name="explore_shadow"
shadow = np.array([[1.0, 0.0], [1.5, 0.5]])
explore.valleys(
    energy, posterior, shadow, 16, beta_range=(0.5, 1024), heights=(-0.2, 0.4), limits=(-0.5, 2)
)

# %% [markdown] name="claim"
# ## Check the claim
#
# > *"The energy is a Gaussian mixture with one component for each token: n tokens, n modes."*
#
# (A **mode** is a peak of the density, so a valley of the energy.) The first half you have proved.
# For the second half, measure two things. *(15 minutes)*
#
# - `kept`: on $y_\tau$, a softmax with a very large β picks the largest score. So $y_\tau$ is its
#   own average, and keeps a valley, exactly when its own score $y_\tau\cdot y_\tau$ is larger than
#   its score with every *other* centre. Draw 200 times 32 centres in the plane with `rng.normal`,
#   and take the share of all centres for which this holds, a number between 0 and 1.
# - `rise`: in the middle of the `triangle` there is no centre. At β = 1.9, compute your `energy` on
#   a circle of radius 0.1 around the middle, at 60 angles. Take the lowest of these, minus the
#   energy in the middle.
#
# Then write your verdict on the number of valleys: `"always n"`, `"at most n"` or `"neither"`.

# %% nbgrader={"grade_id": "claim_measurement", "solution": true}
rng = np.random.default_rng(0)
kept, rise = None, None  # measure them
verdict = ""  # "always n", "at most n" or "neither"
### BEGIN SOLUTION
scores = [centres @ centres.T for centres in rng.normal(size=(200, 32, 2))]
kept = np.mean([np.diag(table) == table.max(axis=1) for table in scores])
angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
circle = 0.1 * np.column_stack([np.cos(angles), np.sin(angles)])
rise = min(energy(point, triangle, 1.9) for point in circle) - energy(np.zeros(2), triangle, 1.9)
verdict = "neither"
### END SOLUTION

# %% name="claim_check"
if kept is None or rise is None:
    print("Measure `kept` and `rise` first.")
elif not (np.ndim(kept) == 0 and 0 < kept < 1):
    print(f"`kept` is outside (0, 1): {kept}. Compare with other centres only; give a share.")
else:
    outside = energy(0.6 * triangle[0], triangle, 1.9) - energy(np.zeros(2), triangle, 1.9)
    more = rise > 0 > outside
    print(f"Of 32 random centres {100 * kept:.0f} % keep a valley.")
    print(f"Around the middle of the triangle the energy is higher by {rise:.1e} or more,")
    print(f"and farther out it is lower than in the middle, by {-outside:.1e}.")
    if more:
        print("So the middle is a valley without a centre; by symmetry there are three more.")
    found = "neither" if more else "at most n"
    print(f"Measured: {found}. Your verdict: {verdict or 'not written yet'}.")

# %% [markdown] name="claim_said"
# A **component** is a term of the sum: there are n. A **valley** is a place: their number depends on
# the centres, and on β. When all centres fit into a ball of radius ρ, and $\beta\rho^2 < 1$, there
# is exactly one. Two centres of equal length, $2r$ apart, split at $1/r^2$. For more than two, no
# rule about pairs holds: you have to count.

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Close the theory above. Answer in your own words, in the cell below, then open the answers.
# *(6 minutes)*
#
# 1. Write the polarisation identity.
# 2. What is $\pi_\tau$ for a centre at the origin? How high is its bump beside the others, and can
#    it have a valley when β is large?
# 3. What is $E$ minus $\big(-\frac1\beta\ln p\big)$?

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. $\xi\cdot y = \tfrac12\lVert\xi\rVert^2 - \tfrac12\lVert\xi-y\rVert^2 +
#    \tfrac12\lVert y\rVert^2$. It returns in lesson 5, where the bumps stand on $2^n$ corners.
# 2. It is 1 at every β, so its bump has height 1, and every other bump grows with β. All its scores
#    are 0, its own included: it lies in the shadow of all others, and has no valley of its own when
#    β is large. This returns in lesson 7: where a walk ends is decided by scores, not by distances.
# 3. $-\frac1\beta\big[\ln\sum_\tau\pi_\tau + \tfrac d2 \ln(2\pi/\beta)\big]$. It does not depend
#    on ξ, so it moves no valley. That is why lesson 3 can speak of differences of energy only.
#
# </details>
#
# And your predictions? The next cells measure all five with your functions.


# %% name="measure"
def split_of_a_pair(low=0.25, high=16.0):
    """Halve an interval of β: below the split, the middle of centres ±0.5 curves upwards."""
    pair, h = np.array([[0.5], [-0.5]]), np.array([1e-3])
    while high - low > 1e-6:
        beta = (low + high) / 2
        sides = energy(h, pair, beta) + energy(-h, pair, beta)
        low, high = (beta, high) if sides > 2 * energy(0 * h, pair, beta) else (low, beta)
    return beta


def ratio_of_bumps():
    """Compare the heights of the bumps on centres of length 8.8 and 8."""
    longer, shorter = log_mixture_weights(np.array([[8.8], [8.0]]), 1.0)
    return np.exp(longer - shorter)


def different_ends(starts, Y, beta, steps=500):
    """Replace each start by its own average of the centres, again and again; count the ends."""
    ends = []
    for x in starts:
        for _ in range(steps):
            x = posterior(x, Y, beta) @ Y
        ends.append(np.round(x, 3) + 0.0)
    return len(np.unique(ends, axis=0))


# %% name="measure_with_care"
def percent_kept():
    """Return the share that you measured for the claim."""
    if kept is None or not (np.ndim(kept) == 0 and 0 < kept < 1):
        raise NotImplementedError
    return 100 * kept


def measured(measure, **options):
    """Pick an option by measuring; where that fails, leave the row open and say why."""
    try:
        return pick(measure(), **options)
    except NotImplementedError:
        raise
    except Exception as error:
        print(f"A row stays open. Check the function that it needs: {error}")
        raise NotImplementedError from None


# %% name="reveal"
unit = np.random.default_rng(3).normal(size=(8, 64))
unit /= np.linalg.norm(unit, axis=1, keepdims=True)
near_and_far = [*triangle, np.array([0.02, 0.01])]
reveal(
    prediction,
    {
        "q1": lambda: measured(split_of_a_pair, a=1, b=2, c=4, d=8),
        "q2": lambda: measured(ratio_of_bumps, a=1.1, b=2.3, c=29, d=829),
        "q3": lambda: measured(lambda: different_ends(near_and_far, triangle, 1.9),
                               a=1, b=2, c=3, d=4),
        "q4": lambda: measured(lambda: different_ends(unit, unit, 1 / 8, 40), a=0, b=1, c=4, d=8),
        "q5": lambda: measured(percent_kept, a=2, b=16, c=50, d=100),
    },
)  # fmt: skip

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: a valley census *(45 minutes)*
#
# Write `valley_census(Y, betas)`: for every β of an array, the number of valleys of the energy.
#
# A flat point is its own average. Replace a point by $aY$ again and again, and it comes to rest on
# one. Think about
#
# - *where to start*: every valley lies among the centres, but not always near one;
# - *when to stop*: close to a split there are thousands of very short steps. Let the length of a
#   step decide, not a number of steps that seems large;
# - *what to keep*: which flat points are valleys? Step 5 tells, except exactly at a split. Avoid
#   such β in your grid;
# - *what is the same*: two walks can end in one valley.
#
# `softmax(..., axis=1)` walks all starts at once, one row a start. A call has five seconds.
#
# Then show the number of valleys against β for the `triangle`, and for a pair that you have not
# seen: $(1, 0)$ and $(0, \tfrac34)$. *Predict* where the pair splits, then measure it. The theorem:
# two centres $2r$ apart have two valleys exactly when $\beta r^2 > 1$ and
#
# $$\frac{\big|\lVert y_1\rVert^2 - \lVert y_2\rVert^2\big|}{4r} \;<\;
# r\,t - \frac{\operatorname{artanh} t}{\beta r}, \qquad t = \sqrt{1 - \frac{1}{\beta r^2}}.$$
#
# | read by a person | points |
# |---|---|
# | measurement: the count against β is shown for both, with readable axes or columns | 2 |
# | measurement: the pair's split is measured within 1 % of the prediction | 1 |
# | report: it gives the prediction, and says why the split is not at $1/r^2$ | 1 |
# | report: it says how you know that each place you count is a valley, and is counted once | 2 |


# %% nbgrader={"grade_id": "valley_census", "solution": true}
def valley_census(Y: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """Return how many valleys the energy has at each beta, shape (m,).

    Y: centres as rows, shape (n, d).  betas: inverse temperatures, shape (m,), above 0.

    >>> valley_census(np.array([[0.5, 0.0], [-0.5, 0.0]]), np.array([3.0, 5.0]))
    array([1, 2])
    """
    ### BEGIN SOLUTION
    groups = [list(g) for k in (1, 2, 3) for g in itertools.combinations(range(len(Y)), k)]
    starts = np.array([Y[g].mean(axis=0) for g in groups] + [Y.mean(axis=0)])
    return np.array([len(find_valleys(starts, Y, beta)) for beta in betas])


def find_valleys(x, Y, beta):
    """Walk every row of x to rest; return the different ends that curve upwards."""
    for _ in range(20_000):
        x, before = softmax(beta * x @ Y.T, axis=1) @ Y, x
        if np.abs(x - before).max() < 1e-10:
            break
    kept = []
    for end in x:
        centred = Y - end
        spread = beta * (centred.T * posterior(end, Y, beta)) @ centred
        if np.linalg.eigvalsh(spread)[-1] < 1 - 1e-6:
            kept += [end] if all(np.linalg.norm(end - k) > 1e-4 for k in kept) else []
    return kept
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(valley_census)

# %% nbgrader={"grade_id": "project_sweep", "solution": true}
# Your figure: valleys against β for the triangle and the pair.
### BEGIN SOLUTION
new_pair = np.array([[1.0, 0.0], [0.0, 0.75]])
layouts = {"triangle": (triangle, 1.7, 2.1), "pair of unequal length": (new_pair, 2, 8)}
with draw.figure(
    ncols=2,
    words="Valleys against β. The triangle has 1, then 4, then 3 valleys. The pair splits at 5.28, "
    "long after 2.56, where a pair of equal length would.",
) as (picture, axes):
    for ax, (name, (Y, low, high)) in zip(axes, layouts.items(), strict=True):
        betas = np.linspace(low, high, 30)
        draw.draw_path(ax, np.column_stack([betas, valley_census(Y, betas)]), "landing", dots=True)
        ax.set(title=name, xlabel="β", ylabel="valleys", ylim=(0, 5))
picture
### END SOLUTION

# %% nbgrader={"grade_id": "project_checks", "solution": true}
# Where the pair splits: your prediction, and its measurement.
### BEGIN SOLUTION
r = np.linalg.norm(new_pair[0] - new_pair[1]) / 2
mu = abs(new_pair[0] @ new_pair[0] - new_pair[1] @ new_pair[1]) / (4 * r)
betas = np.arange(2.6, 9, 0.0005)
t = np.sqrt(1 - 1 / (betas * r**2))
predicted = betas[r * t - np.arctanh(t) / (betas * r) > mu][0]
low, high = 2.6, 9.0
while high - low > 1e-3:
    middle = (low + high) / 2
    low, high = (middle, high) if valley_census(new_pair, [middle])[0] < 2 else (low, middle)
print(f"the pair: predicted {predicted:.3f}, measured {high:.3f}, pair rule {1 / r**2:.3f}")
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# The theorem predicts 5.281, and the census finds the split there within one part in a thousand.
# 1/r² = 2.56 is far too early: it holds for equal lengths, and here the longer centre's bump covers
# the other one. The triangle has 4 valleys between 1.83 and 2. Every walk went on until a step was
# shorter than 1e-10, so its end is flat; an end counts when all eigenvalues of the curvature are
# above 0, so saddles between two centres are left out; and ends nearer than 1e-4 are one place.
# Starts at the centres alone would miss the valley in the middle of the triangle.
# ### END SOLUTION

# %% [markdown] name="limits"
# ## What was not shown
#
# - Learned matrices, and other bowls (lesson 4).
# - Why the walk $\xi \to aY$ never climbs, and why its first step is attention (lesson 3).
# - How deep a valley is. At β = 2.1, eight centres on a circle have eight valleys already, with
#   ridges of 5e-9 between them: a count alone does not say what a valley is worth.
# - How many valleys there can be at most. In one dimension never more than n; in more, bounds are
#   known, but not the largest number (the last paper below).
#
# **Read on.** H. Ramsauer and others, *Hopfield networks is all you need*, ICLR 2021
# (arXiv 2008.02217): the same energy, up to constants. M. Carreira-Perpiñán and C. Williams, *On
# the number of modes of a Gaussian mixture*, Scale Space Methods in Computer Vision 2003: more
# modes than components, with the triangle. C. Améndola, A. Engström and C. Haase, *Maximum number
# of modes of Gaussian mixtures*, Information and Inference 9 (2020) (arXiv 1702.05066): how many
# more.
