"""The idealised flow of Zimin et al. (2025), equation 1: tokens on the unit sphere with attention Q = K = V = I.

    dx/dt = P_x v,   v(x) = mean over tokens y of exp(beta <x, y>) y,   P_x the projection onto the tangent space at x.

It is the gradient ascent of the interaction energy E[mu] = 1/2 mean K(<x, y>) with K(z) = exp(beta z) / beta.

Theorem 2.1 is about entropy. Along the flow the logarithm of the density at a moving token changes at the rate -div v,
so that the *negative* entropy, the integral of mu log mu, has the derivative -mean div v. On the sphere S^(d-1) the
divergence of the gradient of K(<x, y>) is (1 - z^2) K''(z) - (d - 1) z K'(z) with z = <x, y>. In an expansion in
spherical harmonics, every term of degree l >= 1 of -div is at least (d - 1) times that of K. Hence

    d/dt integral mu log mu  =  -mean div v  >=  2 (d - 1) (E[mu] - E[uniform]).

The negative entropy grows at least linearly: tokens cluster, and the differential entropy falls. The published
statement has the opposite sign and lacks the factor 2. The Kuramoto model (d = 2, beta -> 0) attains equality.
"""

import math
from dataclasses import dataclass

import torch
from scipy.special import digamma, ive
from torch import Tensor


def velocity(x_ND: Tensor, beta: float) -> Tensor:
    """The vector field of equation 1 at every token, tangent to the sphere."""
    pull_ND = torch.exp(beta * x_ND @ x_ND.T) @ x_ND / len(x_ND)
    return pull_ND - (pull_ND * x_ND).sum(1, keepdim=True) * x_ND


def energy(x_ND: Tensor, beta: float) -> float:
    """The interaction energy of the tokens (equation 2)."""
    return (torch.exp(beta * x_ND @ x_ND.T).mean() / (2 * beta)).item()


def uniform_energy(dim: int, beta: float) -> float:
    """The energy of the uniform measure on S^(dim-1), which is the smallest possible energy."""
    order = dim / 2 - 1
    mean_kernel = math.gamma(dim / 2) * (2 / beta) ** order * float(ive(order, beta)) * math.exp(beta)
    return mean_kernel / (2 * beta)


def clustering_rate(x_ND: Tensor, beta: float) -> float:
    """The rate at which the negative entropy grows: minus the mean divergence of the field."""
    z_NN = (x_ND @ x_ND.T).clamp(-1, 1)
    dim = x_ND.shape[1]
    return (torch.exp(beta * z_NN) * ((dim - 1) * z_NN - beta * (1 - z_NN.square()))).mean().item()


def rate_bound(x_ND: Tensor, beta: float) -> float:
    """The lower bound 2 (d - 1) (E[mu] - E[uniform]) of :func:`clustering_rate`."""
    dim = x_ND.shape[1]
    return 2 * (dim - 1) * (energy(x_ND, beta) - uniform_energy(dim, beta))


@dataclass(frozen=True)
class Trajectory:
    """The flow at S + 1 times; ``negentropy`` is the increase of the negative entropy since the start."""

    times: list[float]
    tokens: list[Tensor]
    energy: list[float]
    negentropy: list[float]
    rate: list[float]
    bound: list[float]


def integrate(x_ND: Tensor, beta: float, time: float, n_steps: int) -> Trajectory:
    """Integrate the flow by the classical Runge-Kutta method, with a projection to the sphere after every step."""
    h = time / n_steps
    x_ND = x_ND / x_ND.norm(dim=1, keepdim=True)
    times, tokens = [0.0], [x_ND]
    energies, rates, bounds = [energy(x_ND, beta)], [clustering_rate(x_ND, beta)], [rate_bound(x_ND, beta)]
    risen = [0.0]
    for step in range(n_steps):
        k1 = velocity(x_ND, beta)
        k2 = velocity(x_ND + h / 2 * k1, beta)
        k3 = velocity(x_ND + h / 2 * k2, beta)
        k4 = velocity(x_ND + h * k3, beta)
        x_ND = x_ND + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x_ND = x_ND / x_ND.norm(dim=1, keepdim=True)
        times.append((step + 1) * h)
        tokens.append(x_ND)
        energies.append(energy(x_ND, beta))
        rates.append(clustering_rate(x_ND, beta))
        bounds.append(rate_bound(x_ND, beta))
        risen.append(risen[-1] + h * (rates[-1] + rates[-2]) / 2)
    return Trajectory(times, tokens, energies, risen, rates, bounds)


def nearest_neighbour_entropy(x_BND: Tensor, k: int = 5, floor: float = 1e-6) -> Tensor:
    """The differential entropy of each point cloud, estimated from k-th neighbour distances (Kozachenko and Leonenko).

    Distances are at least ``floor``, because tokens in the same place would give an entropy of minus infinity.
    """
    _, n_points, dim = x_BND.shape
    distance_BNN = torch.cdist(x_BND, x_BND, compute_mode="donot_use_mm_for_euclid_dist")
    kth_BN = distance_BNN.kthvalue(k + 1, dim=-1).values.clamp_min(floor)
    log_ball = dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)
    return float(digamma(n_points) - digamma(k)) + log_ball + dim * kth_BN.log().mean(1)
