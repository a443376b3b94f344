# %% [markdown] name="challenge"
# # 4 · The hop along the normal
#
# Lesson 3 found that attention is one **hop**: the query ξ jumps to its **landing** $aY$, a step
# down the gradient of the energy, with the step factor exactly 1. But why 1, and not ½, or another
# factor where the slope is steeper? Look at the energy as a surface in space, stand on it, and
# leave it at a right angle. **How far do you walk until the landing is right below you, and how
# far down is it?**
#
# When you are done you can
#
# - compute the normal of an energy surface and walk along it,
# - prove that a rise of exactly 1 leads to the landing, however steep the place is,
# - split the fall to the surface into three parts and say what each is made of,
# - judge the claim that this fall is "much larger than 1".
#
# **Time** about two hours, 50 minutes of them for the project. **You need** the energy and the hop
# of lessons 2 and 3. Their functions are given below, so you do not need your own notebooks.

# %% name="imports"
import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from hopping import check, check_answers, commit, draw, explore, pick, reveal


# %% name="given"
def lse(xi, Y, beta):
    """Return the log-sum-exp of the scores."""
    return np.logaddexp.reduce(np.dot(Y, xi) * beta) / beta


def energy(xi, Y, beta):
    """Return E at xi: the bowl, half the squared length of xi, minus lse."""
    return np.sum(np.square(xi)) / 2 - lse(xi, Y, beta)


def energy_grad(xi, Y, beta):
    """Return g, the gradient of E at xi: xi minus its landing."""
    return xi - np.dot(softmax(np.dot(Y, xi) * beta), Y)


# %% [markdown] name="warm_up"
# ## Warm up
#
# Three things from lessons 1 to 3. Write a letter for each, then run the three cells. *(4 minutes)*
#
# **w1.** Replace the bowl $\frac12\|\xi\|^2$ by the steeper $\|\xi\|^2$. Then the hop of lesson 3
# ends at\
# (a) aY · (b) 2aY · (c) aY/2 · (d) ξ/2.
#
# **w2.** Draw the tangent plane of lse at one place. Then the plane is\
# (a) never above lse · (b) never below lse · (c) sometimes above, sometimes below · (d) lse itself.
#
# **w3.** A hop lowers $E$ at least by a factor times $\|g\|^2$. The largest factor that always
# holds is\
# (a) 0 · (b) 0.5 · (c) 1 · (d) 2.

# %% nbgrader={"grade_id": "warm_up_answers", "solution": true}
answers = {"w1": "", "w2": "", "w3": ""}
### BEGIN SOLUTION
answers = {"w1": "c", "w2": "a", "w3": "b"}
### END SOLUTION

# %% name="warm_up_measured"
xi, beta = np.array([0.75, -0.5]), 1.0
Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]])
landing = xi - energy_grad(xi, Y, beta)
lowest = minimize(lambda z: z @ z - landing @ z, xi).x  # of the bowl minus the tangent of lse
formulas = {"aY": landing, "2aY": 2 * landing, "aY/2": landing / 2, "ξ/2": xi / 2}
nearest = min(formulas, key=lambda name: np.abs(formulas[name] - lowest).max())
others = np.random.default_rng(0).normal(size=(200, 2))
gaps = [lse(z, Y, beta) - lse(xi, Y, beta) - landing @ (z - xi) for z in others]
falls = [
    (energy(z, tokens, beta) - energy(z - g, tokens, beta)) / (g @ g)
    for z in others
    for tokens in (Y, Y[:1])
    for g in [energy_grad(z, tokens, beta)]
]

# %% name="warm_up_check"
check_answers(
    answers,
    {
        "w1": lambda: pick(nearest, a="aY", b="2aY", c="aY/2", d="ξ/2"),
        "w2": lambda: pick("never above lse" if min(gaps) > -1e-12 else "never below lse",
                           a="never above lse", b="never below lse",
                           c="sometimes above, sometimes below", d="lse itself"),
        "w3": lambda: pick(min(falls), a=0, b=0.5, c=1, d=2),
    },
)  # fmt: skip

# %% [markdown] name="predict"
# ## Predict first
#
# Over every query ξ, in $d$ dimensions, put a point at the height $E(\xi)$. These points are a
# **surface** in $d + 1$ dimensions. The **normal** at a point of it is the direction at a right
# angle to the surface, upwards. From the point over ξ, walk straight along the normal. The height
# you have gained is the **rise**. Stop at a rise of 1: the point you have reached is the **apex**.
# Fall straight down from the apex to the surface: the length of this fall is the **drop**.
#
# Commit to an answer for each question before you compute anything. A guess counts: the points are
# for committing, not for being right. *(5 minutes)*
#
# **q1.** Where the slope is $\|g\| = 3$, you walk along the normal until the rise is 1. You walk
# about\
# (a) 1.0 · (b) 3.0 · (c) 4.0 · (d) 3.2.
#
# **q2.** The smallest drop there can be, over all queries and tokens, is\
# (a) 0 · (b) 0.5 · (c) 1 · (d) 2.
#
# **q3.** Query and 4 tokens have length 1 and random directions in 2 dimensions, and
# $\beta = 1/\sqrt{2}$. The median drop is about\
# (a) 1.4 · (b) 1.1 · (c) 2.8 · (d) 5.6.
#
# **q4.** Query and 32 tokens have length 8 and random directions in 64 dimensions, and $\beta = 1/8$.
# The median drop is about\
# (a) 1.4 · (b) 30 · (c) 3 · (d) 300.
#
# **q5.** A steeper bowl, $\frac42\|\xi\|^2$ in place of $\frac12\|\xi\|^2$. The rise that leads to its
# landing is\
# (a) 0.25 · (b) 1 · (c) 0.5 · (d) 4.

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": "", "q2": "", "q3": "", "q4": "", "q5": ""}
### BEGIN SOLUTION
prediction = {"q1": "d", "q2": "c", "q3": "a", "q4": "b", "q5": "a"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=5)

# %% [markdown] name="model"
# ## The model, in five small steps
#
# *(12 minutes, with the example by hand)*
#
# **Step 1: the surface.** Its points are $(\xi, E(\xi))$: the $d$ coordinates of the query first,
# the height last. Move ξ a little along coordinate $j$, and the height changes by
# $g_j = \partial E / \partial \xi_j$ for each unit. So the surface has the tangents $(e_j,\, g_j)$, one for each
# coordinate; $e_j$ is 1 in place $j$ and 0 elsewhere.
#
# **Step 2: its normal.** The direction $(-g,\, 1)$ is at a right angle to every tangent, because
# $(-g, 1) \cdot (e_j, g_j) = -g_j + g_j = 0$. Its length is $\sqrt{1 + \|g\|^2}$, by Pythagoras. So
# the normal of length 1, upwards, is
#
# $$\hat n = \frac{(-g,\; 1)}{\sqrt{1 + \|g\|^2}}.$$
#
# **Step 3: the walk.** Whoever goes along $(-g, 1)$ moves by $-g$ in the plane *for each unit of
# height*. Stop when the height has risen by exactly 1. Then you have moved by exactly $-g$, and
# stand above
#
# $$\xi - g = \xi - (\xi - aY) = aY, \qquad \textbf{the landing.}$$
#
# Nothing here asks how steep the place is. The rise is 1 everywhere; what depends on the slope is
# the distance you walk for it, $\sqrt{1 + \|g\|^2}$.
#
# **Step 4: the drop.** From the apex, at the height $E(\xi) + 1$, fall to the surface, at the
# height $E(aY)$. So the drop is $1 + E(\xi) - E(aY)$. Now $E$ is a bowl minus lse; take them one by
# one.
#
# - The bowl: $\tfrac12\|\xi\|^2 - \tfrac12\|\xi - g\|^2 = \xi \cdot g - \tfrac12\|g\|^2$.
# - lse: its tangent plane at ξ has the gradient $aY$, so from ξ to $\xi - g$ the plane changes by
#   $-aY \cdot g$. lse is convex and lies above its tangent plane. Call the gap at the landing $D$:
#
# $$D = \mathrm{lse}(aY) - \bigl[\mathrm{lse}(\xi) - aY \cdot g\bigr] \;\ge\; 0.$$
#
# Together: $E(\xi) - E(aY) = (\xi - aY) \cdot g - \tfrac12\|g\|^2 + D$, and $\xi - aY$ is $g$
# itself:
#
# $$\boxed{\;\text{drop} = 1 + \tfrac12\|g\|^2 + D\;}$$
#
# Three parts, none negative: the **rise**, the **bowl's part**, and the **bend**, which is what lse
# curves away from its tangent (a *Bregman divergence*). Where the hop stays put, $g = 0$, the drop
# is exactly 1. Everywhere else it is larger.
#
# As a picture: replace lse by its tangent, and $E$ becomes a parabola of curvature 1. It touches
# $E$ at ξ, lies nowhere below it, and has its bottom at the landing, $\tfrac12\|g\|^2$ lower.
#
# **Step 5: another bowl.** Over $\frac c2\|\xi\|^2$ the gradient is $c\,\xi - aY$, and the hop of
# lesson 3 lands where the bowl's slope equals that of lse: $c\,\xi^+ = aY$, so $\xi^+ = aY/c$. A
# rise $r$ leads above $\xi - r\,(c\,\xi - aY)$, which is $aY/c$ for $r = 1/c$ and, unless the
# gradient is 0, for no other. **The rise is 1 because the curvature of the bowl is 1.** A bowl
# whose curvature depends on the direction has no right rise, except at special places.

# %% [markdown] name="by_hand"
# ### By hand
#
# One token $y = \tfrac14$ in one dimension, the query $\xi = 1$, any β. A single token has weight
# 1, so $\mathrm{lse} = \tfrac14 \xi$, and $E = \tfrac12\xi^2 - \tfrac14\xi$ with the gradient
# $g = \xi - \tfrac14$.
#
# - Start: $E(1) = \tfrac14$ and $g = \tfrac34$.
# - Normal: $(-\tfrac34, 1)$ has length $\tfrac54$, so $\hat n = (-\tfrac35, \tfrac45)$.
# - Walk $\tfrac54$ along it: $(1, \tfrac14) + (-\tfrac34, 1) = (\tfrac14, \tfrac54)$. That is above
#   the token, the only place a hop can land.
# - Ground: $E(\tfrac14) = \tfrac1{32} - \tfrac1{16} = -\tfrac1{32}$. Drop:
#   $\tfrac54 + \tfrac1{32} = \tfrac{41}{32} = 1.28125$.
# - Parts: $1 + \tfrac12 \cdot \tfrac9{16} = \tfrac{41}{32}$. The bend is 0: with one token lse is a
#   straight line.
#
# The next cell draws these numbers.

# %% name="first_picture"
with draw.figure(
    words="The walk along the normal is 1.25 long and leaves the curve at a right angle. It ends "
    "1 higher, above the landing 0.25. From there the curve is 1.28 below.",
    size=(7.5, 5.2),
) as (picture, (ax,)):
    x = np.linspace(-0.75, 1.75, 101)
    draw.draw_path(ax, np.column_stack([x, x**2 / 2 - x / 4]), "ink", label="surface")
    draw.draw_path(ax, [[1, 1 / 4], [1 / 4, 5 / 4]], "query", label="walk along the normal")
    draw.draw_path(ax, [[1 / 4, 5 / 4], [1 / 4, -1 / 32]], "other", label="drop")
    draw.draw_points(ax, [1, 1 / 4], "query", names=["ξ"])
    draw.draw_points(ax, [1 / 4, 5 / 4], "other", names=["apex"])
    draw.draw_points(ax, [1 / 4, -1 / 32], "landing", label="landing")
    ax.set(aspect="equal", xlim=(-0.75, 1.75), ylim=(-0.25, 1.5), xlabel="query", ylabel="E")
    picture.legend(loc="outside upper center", ncols=4)
picture

# %% [markdown] name="practice"
# ## Guided practice
#
# Five functions. After each one, `check(...)` tells you at once what is wrong and what to think
# about. Arrays that you are given must not be changed; what you return must be a new array or
# number. Lengths and points are compared to about nine digits, drops to eight. Use `energy`,
# `energy_grad` and `lse` from the top.

# %% [markdown] name="practice_normal"
# ### 1. `unit_normal`: at a right angle *(5 minutes)*
#
# $$\hat n = \frac{(-g,\; 1)}{\sqrt{1 + \|g\|^2}}, \qquad g = \nabla E(\xi)$$
#
# Shape `(d + 1,)`: first the $d$ horizontal components, last the height component, which is
# positive. Length 1. `np.append(vector, number)` makes one array of both.
#
# <details><summary>It has length 1, but the right angle is missing</summary>
# Take the dot product with a tangent, (1, 0, …, slope in the first coordinate). What must the sign
# of the horizontal part be so that it vanishes?
# </details>
# <details><summary>The check says something about Pythagoras</summary>
# One leg of the triangle is 1, the other is the length of g. Which squares stand under the root?
# </details>


# %% nbgrader={"grade_id": "unit_normal", "solution": true}
def unit_normal(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the upward normal of length 1 of the energy surface over xi, shape (d + 1,).

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.
    The height component stands last.

    >>> unit_normal(np.array([0.5, 1.0]), np.array([[0.05, 0.4]]), 1.0).round(4)
    array([-0.36, -0.48,  0.8 ])
    """
    ### BEGIN SOLUTION
    leaning = np.append(-energy_grad(xi, Y, beta), 1.0)
    return leaning / np.linalg.norm(leaning)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(unit_normal)

# %% [markdown] name="practice_length"
# ### 2. `hop_length`: how far to walk *(3 minutes)*
#
# $$\text{length} = \text{rise} \cdot \sqrt{1 + \|g\|^2}$$
#
# One number: the distance along the normal that gains `rise` in height. The rise is 1 unless the
# caller says otherwise.
#
# <details><summary>It passes where the rise is 1 and fails elsewhere</summary>
# Two walks along the same normal are the sides of similar triangles. Half the rise is what part of
# the walk?
# </details>


# %% nbgrader={"grade_id": "hop_length", "solution": true}
def hop_length(xi: np.ndarray, Y: np.ndarray, beta: float, rise: float = 1.0) -> float:
    """Return the distance along the normal over xi in which the height rises by `rise`.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.
    rise: height to gain, in units of the energy.

    >>> round(float(hop_length(np.array([0.5, 1.0]), np.array([[0.05, 0.4]]), 1.0)), 4)
    1.25
    """
    ### BEGIN SOLUTION
    g = energy_grad(xi, Y, beta)
    return rise * np.sqrt(1 + g @ g)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(hop_length)

# %% [markdown] name="practice_apex"
# ### 3. `hop_apex`: where the walk ends *(4 minutes)*
#
# $$\text{apex} = (\xi,\, E(\xi)) + \text{length} \cdot \hat n$$
#
# Shape `(d + 1,)`: first the place, last the height. You have both factors already. Before you run
# the check, say what must come out for the place when the rise is 1, and what for the height.
#
# <details><summary>The place is right and the height is not</summary>
# The walk does not begin at height 0. What is under your feet at the start?
# </details>
# <details><summary>The walk is too long</summary>
# There is one square root in the formula. If you scale by it twice, you gain more than the rise.
# </details>


# %% nbgrader={"grade_id": "hop_apex", "solution": true}
def hop_apex(xi: np.ndarray, Y: np.ndarray, beta: float, rise: float = 1.0) -> np.ndarray:
    """Return the point reached by a walk along the normal, shape (d + 1,): place, then height.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.
    rise: height to gain, in units of the energy.

    >>> hop_apex(np.array([0.5, 1.0]), np.array([[0.05, 0.4]]), 1.0).round(4)
    array([0.05, 0.4 , 1.2 ])
    """
    ### BEGIN SOLUTION
    start = np.append(xi, energy(xi, Y, beta))
    return start + hop_length(xi, Y, beta, rise) * unit_normal(xi, Y, beta)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(hop_apex)

# %% [markdown] name="theorem_tested"
# #### Test the theorem
#
# You built the walk from a right angle and a rise; nowhere did you tell it where to end. The next
# two cells set its end beside $aY$ on 300 random landscapes in 5 dimensions. All three differences
# should be rounding, below a millionth of a millionth.


# %% name="theorem"
def differences(query, tokens, beta):
    """Return how far rise, place and right angle are from what the theorem says."""
    apex, normal = hop_apex(query, tokens, beta), unit_normal(query, tokens, beta)
    landing = softmax(beta * tokens @ query) @ tokens
    tangents = np.column_stack([np.eye(len(query)), energy_grad(query, tokens, beta)])
    off = (apex[-1] - energy(query, tokens, beta) - 1, apex[:-1] - landing, tangents @ normal)
    return [np.abs(difference).max() for difference in off]


# %% name="theorem_measured"
rng = np.random.default_rng(0)
off = [differences(rng.normal(size=5), rng.normal(size=(4, 5)), 2.0) for _ in range(300)]
words = ("rise minus 1", "place of the apex minus aY", "normal dot tangents")
for name, difference in zip(words, np.max(off, axis=0), strict=True):
    print(f"{name + ':':28} {difference:.0e}")

# %% [markdown] name="practice_drop"
# ### 4. `vertical_drop`: how far down *(3 minutes)*
#
# $$\text{drop} = \text{height of the apex} - E(\text{place below the apex})$$
#
# One number, for a rise of 1. Straight down means: the same place, only the height changes.
#
# <details><summary>My drop is about 1 too small</summary>
# That is how much lower the landing is than the query. But where does the fall begin?
# </details>
# <details><summary>My drop is a little too large</summary>
# Does it end at the landing of this hop, or at the bottom of the valley?
# </details>


# %% nbgrader={"grade_id": "vertical_drop", "solution": true}
def vertical_drop(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """Return the height of the apex (rise 1) above the surface right below it.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> round(float(vertical_drop(np.array([0.5, 1.0]), np.array([[0.05, 0.4]]), 1.0)), 5)
    1.28125
    """
    ### BEGIN SOLUTION
    *place, height = hop_apex(xi, Y, beta)
    return height - energy(np.array(place), Y, beta)
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(vertical_drop)

# %% [markdown] name="practice_parts"
# ### 5. `drop_parts`: what the drop is made of *(5 minutes)*
#
# $$\bigl[\;1,\quad \tfrac12\|g\|^2,\quad D\;\bigr], \qquad
# D = \mathrm{lse}(aY) - \bigl[\mathrm{lse}(\xi) - aY \cdot g\bigr]$$
#
# Shape `(3,)`. Compute $D$ from its own formula: then the sum of the parts tests step 4 and your
# code. What is left of the drop is the same number, but tests nothing. Rounding may leave $D$ at
# $-10^{-16}$ in place of 0; the check lets that pass.
#
# <details><summary>My D is negative, and not by rounding</summary>
# Two things are subtracted from lse at the landing: the value at the start, and the way along the
# tangent. Going by minus g along the slope aY, does the tangent rise or fall?
# </details>
# <details><summary>The parts add up to too much</summary>
# A first-order estimate of the fall would be the squared length of g. The bowl flattens on the way.
# How much of it is left?
# </details>


# %% nbgrader={"grade_id": "drop_parts", "solution": true}
def drop_parts(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the three parts of the vertical drop, shape (3,): rise, bowl's part, bend.

    xi: query, shape (d,).  Y: tokens as rows, shape (n, d).  beta: inverse temperature, above 0.

    >>> drop_parts(np.array([0.25]), np.array([[1.0], [-1.0]]), 2.0).round(4)
    array([1.    , 0.0225, 0.0306])
    """
    ### BEGIN SOLUTION
    g = energy_grad(xi, Y, beta)
    landing = xi - g
    tangent = lse(xi, Y, beta) - landing @ g
    return np.array([1.0, g @ g / 2, lse(landing, Y, beta) - tangent])
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(drop_parts)

# %% [markdown] name="see_it"
# ## See it
#
# Three pictures, drawn by *your* functions. For each question say what you expect, move the
# control, then open the answer. *(12 minutes)*
#
# The first shows one hop from above, in space, and in the upright slice that holds the normal. In
# the slice, the level of the query (where the grey begins) and the parabola of step 4 split the
# drop into its parts. In space, ΔE is the height above $E(0)$.
#
# - **query**: drag it, or move it with the arrow keys, to the bottom of a valley. Which parts are
#   left? How long is the walk?
# - **β**: move it from end to end. The surface is nowhere above the parabola. Which step of the
#   model says so? Which part does β never change?
#
# <details><summary>query</summary>
# Only the rise: there is no slope, so no bowl's part and no bend. The walk is 1 long, straight up.
# </details>
# <details><summary>β</summary>
# Step 4: the parabola is E with lse replaced by its tangent, and lse lies nowhere below that. Only
# the rise never changes: the other two parts come from g and lse, which depend on β.
# </details>

# %% name="explore_hop"
explore.hop_along_normal(energy, unit_normal, hop_length, hop_apex, vertical_drop, drop_parts)

# %% [markdown] name="see_bowls"
# The second has a bowl of curvature $c$. It needs no new function: that surface is $c$ times as
# tall as your own surface for the tokens $Y/c$ at the inverse temperature $c\beta$.
#
# <details><summary>Why is it, and why does the code pass c * rise to hop_apex?</summary>
# The scores are divided by c and β is multiplied by c: the exponents are as before, and lse, with
# 1/β in front, is divided by c. So c times your surface is c times the bowl, minus the old lse. Its
# heights and slopes are c times yours. To get as far on yours as with a rise there, pass c·rise.
# </details>
#
# - **bowl c**: leave the rise at 1 and move $c$. Where does the walk hit the landing, on which side
#   of it does it end for a steeper bowl?
# - **rise**: set $c = 4$, then $c = \tfrac14$. Which rise hits? Why is the curve of misses made of
#   two straight lines?
#
# <details><summary>bowl c</summary>
# It hits at c = 1. Over a steeper bowl the normal leans more, and the walk goes too far. At c = 4
# it even leaves through the other wall, and its end is below the surface.
# </details>
# <details><summary>rise</summary>
# ¼, then 4: always 1/c. The place moves evenly with the rise r and passes over the landing, so
# the miss is |1 − rc| · ‖ξ − aY/c‖: it falls to 0 in a straight line and grows again in another.
# </details>

# %% name="explore_bowls"
explore.other_bowls(energy, energy_grad, hop_apex)

# %% [markdown] name="see_sizes"
# The third leaves the plane. Query and 32 tokens have one length and random directions in $d$
# dimensions, and $\beta = 1/\sqrt d$. The thin curve is $1 + \tfrac12 L^2$ for the length $L$: rise
# and bowl's part of a hop all the way to 0. It leaves out the bend, so the drop may lie a little
# above it, as at length 2.
#
# - **length**: at $d = 64$ go from 8 down to 1. Which part of the drop is it that grows with the
#   length?
# - **d**: at length 8 go from 64 down to 2. The tokens are as long as before. Why is the drop small
#   now? (Where, among 32 tokens on a circle, is the one that takes most of the weight?)
#
# <details><summary>length</summary>
# The bowl's part, half of the squared length of the hop. The rise stays 1, the bend stays small.
# </details>
# <details><summary>d</summary>
# Among 32 tokens on a circle one lies near the query, and long tokens give it nearly all weight. So
# the landing is near the query, the hop is short, and little but the rise is left.
# </details>

# %% name="explore_sizes"
explore.large_drops(vertical_drop, drop_parts)

# %% [markdown] name="claim"
# ## Check the claim
#
# > *"The vertical drop is not 1: it is typically much larger."*
#
# You can read this on the web. Measure it in two worlds. Let "much larger" mean above 3.
#
# The next cell gives you `random_hop`. With it, draw 300 hops of *short* tokens, `random_hop(rng,
# 2, 4, 1.0)`, and 300 of *long* ones, `random_hop(rng, 64, 32, 8.0)`. Each returns the three
# arguments of your `vertical_drop`. Keep the drops in `short_drops` and `long_drops`. Then write
# your verdict, whether the typical drop is much larger than 1: `"always"`, `"never"` or
# `"depends"`. *(8 minutes)*


# %% name="claim_given"
def random_hop(rng, d, n, length):
    """Draw a query and n tokens of one length in random directions; return xi, Y, beta."""
    at = rng.normal(size=(n + 1, d))
    at *= length / np.linalg.norm(at, axis=1, keepdims=True)
    return at[0], at[1:], d**-0.5


# %% nbgrader={"grade_id": "claim_measurement", "solution": true}
rng = np.random.default_rng(0)
short_drops, long_drops = None, None  # measure 300 of each
verdict = ""  # "always", "never" or "depends"
### BEGIN SOLUTION
short_drops = [vertical_drop(*random_hop(rng, 2, 4, 1.0)) for _ in range(300)]
long_drops = [vertical_drop(*random_hop(rng, 64, 32, 8.0)) for _ in range(300)]
verdict = "depends"
### END SOLUTION

# %% name="claim_check"
if short_drops is None or long_drops is None:
    print("Measure `short_drops` and `long_drops` first.")
else:
    shares = []
    for name, drops in (("short", short_drops), ("long", long_drops)):
        shares.append(np.mean(np.array(drops) > 3))
        ends = f"from {np.min(drops):.2f} to {np.max(drops):.2f}"
        print(f"{name:6} tokens: median drop {np.median(drops):5.2f}, {ends}; "
              f"{shares[-1]:.0%} are above 3")  # fmt: skip
    typical = {share > 0.5 for share in shares}
    measured = "depends" if len(typical) == 2 else "always" if typical == {True} else "never"
    print(f"your measurement says: {measured}")
    mark = "✓" if verdict.strip().lower() == measured else "✗"
    print(f"your verdict: {verdict or 'not written yet'} {mark}")

# %% [markdown] name="claim_settled"
# <details><summary>What is true</summary>
#
# Half of it. The drop is never below 1, and it is 1 only where the hop stays put: that half is
# right. "Much larger" is a statement about the *length of the hop*, because the bowl's part is half
# of its square. With short tokens no hop is long. With long tokens in many dimensions, random
# directions are nearly at right angles, so no token stands out, the average of many is near 0, and
# the hop is nearly as long as the query. Many models scale their vectors to a length near $\sqrt
# d$, and then half the squared length is $\tfrac d2$. But in two dimensions the same length gave
# you small drops, and a query that has settled in its valley drops by 1 whatever the tokens are.
#
# </details>

# %% [markdown] name="retrieve"
# ## Retrieve
#
# Close the theory above. Answer in your own words, in the cell below, then open the answers.
# *(6 minutes)*
#
# 1. Why does the rise not depend on how steep the place is?
# 2. Which three parts make the drop?
# 3. What is the drop at the bottom of a valley?

# %% [markdown] name="your_words"
# *Your words (double-click to edit):*
#
# 1. …
# 2. …
# 3. …

# %% [markdown] name="retrieve_answers_shown"
# <details><summary>The answers</summary>
#
# 1. The normal leans by $-g$ for each unit of height, and the hop is $-g$. Steeper means a longer
#    hop and a stronger lean, in the same measure. What grows is the walk. You meet this again in
#    lesson 5: something else is subtracted from the same bowl, and the rise is still 1.
# 2. The rise, 1; the bowl's part, $\tfrac12\|g\|^2$; the bend $D$, by which lse lies above its
#    tangent. In lesson 6 the bend has a closed form.
# 3. Exactly 1: no slope, no hop, straight up and straight down again. It returns in lesson 7, where
#    one hop is compared with settling.
#
# </details>
#
# And your predictions? The next cells measure all five with your functions.


# %% name="measure"
def smallest_drop():
    """Return the smallest drop of 300 random hops and of a query that has settled."""
    still = xi
    for _ in range(300):
        still = hop_apex(still, Y, beta)[:-1]
    hops = [random_hop(np.random.default_rng(seed), 2, 4, 1.0) for seed in range(300)]
    return min(vertical_drop(*hop) for hop in [*hops, (still, Y, beta)])


def median_drop(d, n, length):
    """Return the median drop of 200 random hops."""
    hops = [random_hop(np.random.default_rng(seed), d, n, length) for seed in range(200)]
    return np.median([vertical_drop(*hop) for hop in hops])


# %% name="measure_bowl"
def right_rise(c):
    """Return which rise ends nearest to the landing aY / c, over a bowl of curvature c."""
    landing = softmax(beta * Y @ xi) @ Y / c
    misses = {
        rise: np.linalg.norm(hop_apex(xi, Y / c, c * beta, c * rise)[:-1] - landing)
        for rise in (0.25, 0.5, 1.0, 4.0)
    }
    return min(misses, key=misses.get)


# %% name="reveal"
reveal(
    prediction,
    {
        "q1": lambda: pick(hop_length(np.array([3.0, 1.0]), np.array([[0.0, 1.0]]), 1.0),
                           a=1, b=3, c=4, d=3.2),
        "q2": lambda: pick(smallest_drop(), a=0, b=0.5, c=1, d=2),
        "q3": lambda: pick(median_drop(2, 4, 1.0), a=1.4, b=1.1, c=2.8, d=5.6),
        "q4": lambda: pick(median_drop(64, 32, 8.0), a=1.4, b=30, c=3, d=300),
        "q5": lambda: pick(right_rise(4.0), a=0.25, b=1, c=0.5, d=4),
    },
)  # fmt: skip

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 3}
# ## Mastery project: the anatomy of a hop *(50 minutes)*
#
# Write `hop_numbers(energy, gradient, xi)` for *any* surface: `energy` is a function of a place
# alone and returns a number, `gradient` returns its gradient. It returns five numbers: the length
# of the walk for a rise of 1, the height of the apex, the height of the ground below the apex, the
# drop, and the bend, which is what the drop has beyond $1 + \tfrac12\|g\|^2$. The exam hands it
# the surfaces of three kernels, and a bowl that is steeper than ours.
#
# Then draw one hop in space for each of the three, with the tokens `Y` of the warm-up, β = ¼ and
# the query (−1.9, −1). If you count heights from $E(0)$, the three fit one box. A
# **kernel** is a way to turn scores into what is subtracted from the bowl. Yours, lse, is called
# softmax. The other two belong to lessons 5 and 6; with the scores $s = Y\xi$ they are
#
# $$\text{tanh:}\quad E = \tfrac12\|\xi\|^2 - \tfrac1\beta \sum_\tau \ln\cosh(\beta s_\tau),
# \qquad \nabla E = \xi - \sum_\tau \tanh(\beta s_\tau)\, y_\tau$$
#
# $$\text{linear:}\quad E = \tfrac12\|\xi\|^2 - \tfrac\beta2 \sum_\tau s_\tau^2,
# \qquad \nabla E = \xi - \beta \sum_\tau s_\tau\, y_\tau$$
#
# `with draw.figure(3, projections=["3d"] * 3, words="...") as (picture, axes):` makes three axes,
# and two functions draw on them: `draw.draw_surface(ax, energy, zlim=(low, high))` and
# `draw.draw_hop_on_surface(ax, start, apex, ground, parts=[1, half, bend])`. `start` and `apex` are
# points in space, shape `(3,)`. The parts get their names from
# `picture.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center")`. Print the
# numbers beside the figure. For the rise, build the apex from the normal: whoever writes
# $E(\xi) + 1$ finds 1 without measuring.
#
# In the report: what is the same on all three surfaces, and why? Which numbers differ though their
# formula is the same? What keeps the bend from being negative? And find a surface and a place where
# the drop is *below* 1.
#
# | read by a person | points |
# |---|---|
# | figure: surface, normal, apex and parts of the drop can be told apart, with words | 2 |
# | measurement: rise 1 (apex built from the normal) and right angle, each within 1e-12 | 1 |
# | report: rise, walk and bowl's part are explained from the bowl, the bend from convexity | 2 |
# | report: a drop below 1 is shown with numbers, and why the theorem does not forbid it | 1 |


# %% nbgrader={"grade_id": "hop_numbers", "solution": true}
def hop_numbers(energy, gradient, xi: np.ndarray) -> np.ndarray:
    """Return five numbers of a hop: length, apex height, ground height, drop, bend, shape (5,).

    energy: function of a place, shape (d,), returns a number.  gradient: function of a place,
    returns an array of shape (d,).  xi: query, shape (d,).

    >>> hop_numbers(lambda x: x @ x / 2, lambda x: x, np.array([3.0, 4.0])).round(3)
    array([ 5.099, 13.5  ,  0.   , 13.5  ,  0.   ])
    """
    ### BEGIN SOLUTION
    g = gradient(xi)
    apex, ground = energy(xi) + 1, energy(xi - g)
    bend = apex - ground - 1 - g @ g / 2
    return np.array([np.sqrt(1 + g @ g), apex, ground, apex - ground, bend])
    ### END SOLUTION
    raise NotImplementedError  # your code instead of this line


# %%
check(hop_numbers)

# %% nbgrader={"grade_id": "project_surfaces", "solution": true}
# Your three surfaces: for each an energy and its gradient, functions of a place alone.
### BEGIN SOLUTION
start, b = np.array([-1.9, -1.0]), 0.25
surfaces = {
    "softmax": (lambda x: energy(x, Y, b), lambda x: energy_grad(x, Y, b)),
    "tanh": (lambda x: x @ x / 2 - np.sum(np.log(np.cosh(b * Y @ x))) / b,
             lambda x: x - np.tanh(b * Y @ x) @ Y),
    "linear": (lambda x: x @ x / 2 - b / 2 * np.sum((Y @ x) ** 2),
               lambda x: x - b * (Y @ x) @ Y),
}  # fmt: skip
### END SOLUTION

# %% nbgrader={"grade_id": "project_numbers", "solution": true}
# The numbers of one hop on each, and the right angle, measured.
### BEGIN SOLUTION
print("kernel    length    apex  ground    drop    bend  rise - 1  right angle")
for name, (E, slope) in surfaces.items():
    numbers = hop_numbers(E, slope, start)
    normal = np.append(-slope(start), 1) / numbers[0]
    rise = (np.append(start, E(start)) + numbers[0] * normal)[-1] - E(start)
    tangents = np.column_stack([np.eye(2), slope(start)])
    print(f"{name:8}" + "".join(f"{number:8.3f}" for number in numbers), end="")
    print(f"{rise - 1:10.0e}{np.abs(tangents @ normal).max():13.0e}")
### END SOLUTION

# %% nbgrader={"grade_id": "project_figure", "solution": true}
# Your figure.
### BEGIN SOLUTION
# Heights are counted from that at the origin, so that all three surfaces fit one box.
words = "One hop on three surfaces over the same bowl. The drops: "
words += ", ".join(f"{k} {hop_numbers(*pair, start)[3]:.2f}" for k, pair in surfaces.items())
three = {"projections": ["3d"] * 3, "size": (11, 4.2)}
with draw.figure(3, words=words + ".", **three) as (picture, axes):
    for ax, (name, (E, slope)) in zip(axes, surfaces.items(), strict=True):
        base = E(np.zeros(2))
        _, apex, ground, drop, bend = hop_numbers(E, slope, start)
        parts = [1, drop - 1 - bend, bend]
        low, high = [*start, apex - 1 - base], [*(start - slope(start)), apex - base]
        draw.draw_surface(ax, lambda x, E=E, base=base: E(x) - base, zlim=(-0.5, 4))
        draw.draw_hop_on_surface(ax, low, high, ground - base, parts=parts)
        ax.set_title(f"{name}: {parts[0]} + {parts[1]:.2f} + {bend:.2f}")
    names = axes[0].get_legend_handles_labels()
    picture.legend(*names, loc="outside upper center", ncols=4)
picture
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project_report", "grade": true, "solution": true, "points": 3}
# *Your report.*
#
# ### BEGIN SOLUTION
# The rise is 1 on all three because they share the bowl of curvature 1. The walk and the bowl's
# part depend on the gradient, and so on the kernel, but by the same formula. The bend is how far
# the function that is subtracted from the bowl lies above its tangent: lse, the sum of ln cosh and
# the sum of squares are all convex, so it is never negative. Take the surface 2x² in one dimension,
# at x = 1: the gradient is 4, the walk ends above −3, where the surface is 18 high, and the apex is
# 3 high. The drop is −15. The theorem does not forbid it: 2x² is the bowl minus −1.5x², and that is
# not convex.
# ### END SOLUTION

# %% [markdown] name="limits"
# ## What was not shown
#
# - The picture explains a hop; no network walks along a normal. It computes $aY$ at once.
# - The rise of 1 belongs to the bowl of curvature 1. Over a bowl whose curvature depends on the
#   direction the hop of lesson 3 is still there, but only from special places does a walk along the
#   normal lead to it.
# - A computer loses the rise of 1 where $E$ itself is above $2^{53}$: its numbers are 2 apart
#   there.
# - Random directions stand for tokens here. Trained models have other ones.
#
# **Read on.** A. L. Yuille and A. Rangarajan, *The concave-convex procedure*, Neural Computation 15
# (2003): why a step to the landing never raises the energy. L. M. Bregman, *The relaxation method
# of finding the common point of convex sets*, USSR Computational Mathematics and Mathematical
# Physics 7 (1967): the gap between a convex function and its tangent. H. Ramsauer and others,
# *Hopfield networks is all you need*, ICLR 2021 (arXiv 2008.02217): the energy and its hop.
