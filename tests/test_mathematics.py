"""The theory of lessons 01 to 07: golden values, identities, and the numbers the lessons quote."""

import json
from pathlib import Path

import numpy as np
import pytest

from autograder.reference import (
    cccp,
    gmm_polarization,
    linear_saddle,
    lse_gradient,
    normal_hop,
    one_step_vs_settling,
    tanh_modes,
)

LESSONS = {
    lse_gradient: "lse attention_weights lse_grad fd_grad lse_hessian",
    gmm_polarization: "energy log_mixture_weights energy_gmm posterior log_density",
    cccp: "energy_grad cccp_step token_centers attention_output hop_then_read",
    normal_hop: "unit_normal hop_length hop_apex vertical_drop drop_parts",
    tanh_modes: "log_cosh tanh_energy mode_centers tanh_energy_gmm tanh_step stable_modes",
    linear_saddle: "linear_energy linear_step curvatures critical_beta classify",
    one_step_vs_settling: "settle one_step_gap local_rate gap_curve count_minima",
}
REFERENCE = {
    name: getattr(module, name) for module, names in LESSONS.items() for name in names.split()
}
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())["cases"]
GOLDEN_CASES = [
    pytest.param(name, case["in"], case["out"], id=f"{name}-{case['case']}")
    for name, cases in GOLDEN.items()
    for case in cases
]

# Most functions are algebra and agree to rounding; these stop early or divide differences.
TOLERANCE = {"fd_grad": 1e-8, "settle": 2e-8, "one_step_gap": 1e-6, "gap_curve": 1e-6}


def call(name, inputs):
    """Call a reference function with the inputs of a golden case."""
    if name == "fd_grad":
        point, *rest = (inputs[key] for key in inputs if key != "f")
        return REFERENCE[name](lambda x: FUNCTIONS[inputs["f"]](x, *rest), point)
    result = REFERENCE[name](**inputs)
    return result[0] if name == "settle" else result


FUNCTIONS = {
    "x^2 + 3xy": lambda x: x[0] ** 2 + 3 * x[0] * x[1],
    "lse": lse_gradient.lse,
    "energy": gmm_polarization.energy,
}


def test_every_function_has_golden_values():
    assert set(GOLDEN) == set(REFERENCE)
    assert all(GOLDEN.values())


@pytest.mark.parametrize(("name", "inputs", "expected"), GOLDEN_CASES)
def test_golden(name, inputs, expected):
    got = call(name, inputs)
    if isinstance(expected, str):
        assert got == expected
        return
    tolerance = TOLERANCE.get(name, 1e-9)
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
