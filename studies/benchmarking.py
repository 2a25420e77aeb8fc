"""Bias, spread and error of estimators on matrices of a process with known moments."""

import math

import numpy as np
import pandas

from spectral_moments import all_cycles, increasing, kong_valiant, naive

COMPARED = {
    "naive": naive,
    "kv_row": kong_valiant,
    "kv_col": lambda phi, n_max: kong_valiant(phi, n_max, sampled="columns"),
    "increasing": increasing,
    "all_cycles": all_cycles,
}


def summary(values, truth):
    "Bias, standard deviation and root mean squared error of estimates, with errors."
    root, square = math.sqrt(len(values)), (values - truth) ** 2
    sd, rmse = values.std(ddof=1), math.sqrt(square.mean())
    variance_se = ((values - values.mean()) ** 2).std() / root
    mse_se = square.std(ddof=1) / root
    row = {"truth": truth, "bias": values.mean() - truth, "bias_se": sd / root, "sd": sd}
    row |= {"sd_se": variance_se / (2 * sd or 1)}
    return row | {"rmse": rmse, "rmse_se": mse_se / (2 * rmse or 1)}


def compare_estimators(
    process,  # anything with `sample(P, Q, random_state)` and `moments(n_max)`
    shape,  # (P, Q)
    n_max,  # highest order
    *,
    estimators=COMPARED,  # name -> function of (phi, n_max)
    repetitions=100,  # number of matrices
    random_state=0,  # seed of the matrices
) -> pandas.DataFrame:  # a row for each estimator and order
    "Compare estimators on the same matrices of a process."
    rng, truth = np.random.default_rng(random_state), process.moments(n_max)
    draws = {name: [] for name in estimators}
    for _ in range(repetitions):
        phi = process.sample(*shape, rng)
        for name, estimator in estimators.items():
            draws[name].append(estimator(phi, n_max))
    rows = []
    for name, values in draws.items():
        for n in range(1, n_max + 1):
            of_order = np.array(values)[:, n - 1]
            rows.append({"estimator": name, "n": n} | summary(of_order, truth[n - 1]))
    return pandas.DataFrame(rows).set_index(["estimator", "n"])
