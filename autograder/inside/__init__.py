"""What runs beside a student's code.

These modules import NumPy, IPython and `hopping`, and nothing of `autograder`: the folder alone is
put where a candidate can read it, so that no reference and no hidden case ever is.
"""
