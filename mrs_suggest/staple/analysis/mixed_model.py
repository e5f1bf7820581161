"""A linear mixed model with crossed random intercepts, by restricted maximum likelihood (REML).

    y = X b + sum over factors of Z_i u_i + e,   u_i ~ N(0, s_i^2),   e ~ N(0, s^2)

The model is that of Bates et al. 2015, "Fitting Linear Mixed-Effects Models Using lme4", section 2; a test compares the
fit with statsmodels' `MixedLM`. That one takes crossed factors as variance components of a single group, with a dense
matrix of all levels, so that its time grows with about the cube of the number of prompts: thousands are out of reach.
Here the factor with the most levels, the prompts, is eliminated level by level, and what is left has a row for each
track and team.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
STARTS = (0.2, 1.0)  # of each factor's standard deviation over the residual's; ours
NONE = 1e-4  # a standard deviation of less than that share of the residual's is none


@dataclass(frozen=True)
class MixedFit:
    """A fitted model.

    Attributes:
        estimates: (k,) of the fixed effects.
        covariance: (k, k) of the estimates.
        deviations: factor -> standard deviation of its intercepts; 0 where the fit is singular.
        residual: standard deviation of what is left.
        criterion: -2 times the restricted log-likelihood.
    """

    estimates: Matrix
    covariance: Matrix
    deviations: dict[str, float]
    residual: float
    criterion: float

    @property
    def errors(self) -> Matrix:
        """(k,) standard errors of the estimates."""
        return np.sqrt(np.diag(self.covariance))


def fit_mixed(y: Matrix, x: Matrix, factors: Mapping[str, Sequence[int]]) -> MixedFit:
    """Fit a model.

    Args:
        y: (n,) outcomes, which vary.
        x: (n, k) fixed effects, of full rank, the intercept among them.
        factors: name -> (n,) level of each outcome, from 0.
    """
    from scipy.optimize import minimize

    problem = _Problem(y, x, {name: np.asarray(levels) for name, levels in factors.items()})
    bounds = [(0.0, None)] * len(problem.names)
    starts = [np.full(len(bounds), start) for start in STARTS]
    found = [minimize(problem.criterion, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    best = min(found, key=lambda one: float(one.fun))
    ratios = np.where(best.x < NONE, 0.0, best.x)
    return problem.fit(ratios)


class _Problem:
    """The sums of squares and products that the criterion needs, whatever the standard deviations are."""

    def __init__(self, y: Matrix, x: Matrix, factors: Mapping[str, NDArray[np.int64]]) -> None:
        sizes = {name: int(levels.max()) + 1 for name, levels in factors.items()}
        self.names = sorted(factors, key=lambda name: -sizes[name])  # the one with the most levels first
        self.n, self.k = x.shape
        large, *small = self.names
        blocks = [np.eye(sizes[name])[factors[name]] for name in small]
        columns = np.hstack([x, y[:, None], *blocks])
        self.products = columns.T @ columns
        self.counts = np.bincount(factors[large], minlength=sizes[large]).astype(float)
        self.sums = np.zeros((sizes[large], columns.shape[1]))
        np.add.at(self.sums, factors[large], columns)
        self.repeats = [sizes[name] for name in small]

    def criterion(self, ratios: Matrix) -> float:
        """-2 times the restricted log-likelihood, at the best residual variance for these ratios.

        Args:
            ratios: of each factor's standard deviation to the residual's, in the order of `names`.
        """
        xx, xy, yy, log_det = self._weighed(ratios)
        factor = np.linalg.cholesky(xx)
        rest = yy - float(np.square(np.linalg.solve(factor, xy)).sum())
        free = self.n - self.k
        log_xx = 2 * float(np.log(np.diag(factor)).sum())
        return log_det + log_xx + free * (1 + float(np.log(2 * np.pi * max(rest, 1e-300) / free)))

    def fit(self, ratios: Matrix) -> MixedFit:
        xx, xy, yy, _ = self._weighed(ratios)
        estimates: Matrix = np.linalg.solve(xx, xy).astype(np.float64)
        variance = (yy - float(xy @ estimates)) / (self.n - self.k)
        residual = float(np.sqrt(max(variance, 0.0)))
        deviations = {name: float(ratio) * residual for name, ratio in zip(self.names, ratios, strict=True)}
        return MixedFit(estimates, variance * np.linalg.inv(xx), deviations, residual, self.criterion(ratios))

    def _weighed(self, ratios: Matrix) -> tuple[Matrix, Matrix, float, float]:
        """X'V^-1 X, X'V^-1 y, y'V^-1 y and log |V|, with V the outcomes' covariance over the residual variance."""
        large = ratios[0] ** 2
        shrunk = large / (1 + large * self.counts)
        products = self.products - self.sums.T @ (shrunk[:, None] * self.sums)
        log_det = float(np.log1p(large * self.counts).sum())
        k = self.k + 1  # X and y
        scale = np.repeat(ratios[1:], self.repeats)
        inner = np.eye(len(scale)) + scale[:, None] * products[k:, k:] * scale
        factor = np.linalg.cholesky(inner)
        half = np.linalg.solve(factor, scale[:, None] * products[k:, :k])
        left = products[:k, :k] - half.T @ half
        log_det += 2 * float(np.log(np.diag(factor)).sum())
        return left[:-1, :-1], left[:-1, -1], float(left[-1, -1]), log_det
