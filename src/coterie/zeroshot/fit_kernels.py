"""Compiled fits of k-means and of Gaussian mixtures for :mod:`coterie.zeroshot.coassociation`."""

import numpy as np

from coterie.threads import kernel


@kernel()
def kmeans(x, start, steps):
    """Labels after ``steps`` of Lloyd's algorithm from given labels."""
    n, dims = x.shape
    k = start.max() + 1
    labels = start.copy()
    for _ in range(steps):
        center, count = np.zeros((k, dims)), np.zeros(k)
        for i in range(n):
            count[labels[i]] += 1
            for d in range(dims):
                center[labels[i], d] += x[i, d]
        for c in range(k):
            for d in range(dims):
                center[c, d] = center[c, d] / count[c] if count[c] > 0 else np.inf
        moved = 0
        for i in range(n):
            nearest, least = labels[i], np.inf
            for c in range(k):
                sq = 0.0
                for d in range(dims):
                    sq += (x[i, d] - center[c, d]) ** 2
                if sq < least:
                    nearest, least = c, sq
            moved += nearest != labels[i]
            labels[i] = nearest
        if moved == 0:
            break
    return labels


@kernel()
def mixture(x, share, steps):
    """Responsibilities after ``steps`` of EM with full covariances, each shrunk to their mean, and the BIC."""
    n, dims = x.shape
    k = share.shape[1]
    mean, lower, log_weight = np.empty((k, dims)), np.empty((k, dims, dims)), np.empty(k)
    log_p, delta = np.empty(k), np.empty(dims)
    likelihood = 0.0
    for _ in range(steps + 1):
        _maximise(x, share, mean, lower, log_weight)
        likelihood = 0.0
        for i in range(n):
            most = -np.inf
            for c in range(k):
                sq = 0.0
                log_det = 0.0
                for a in range(dims):  # forward substitution
                    delta[a] = x[i, a] - mean[c, a]
                    for b in range(a):
                        delta[a] -= lower[c, a, b] * delta[b]
                    delta[a] /= lower[c, a, a]
                    sq += delta[a] ** 2
                    log_det += np.log(lower[c, a, a])
                log_p[c] = log_weight[c] - 0.5 * sq - log_det
                most = max(most, log_p[c])
            total = 0.0
            for c in range(k):
                share[i, c] = np.exp(log_p[c] - most)
                total += share[i, c]
            for c in range(k):
                share[i, c] /= total
            likelihood += most + np.log(total)
    likelihood -= 0.5 * n * dims * np.log(2 * np.pi)
    return share, (k * (dims + 1) * (dims + 2) / 2 - 1) * np.log(n) - 2 * likelihood


@kernel()
def _maximise(x, share, mean, lower, log_weight):
    n, dims = x.shape
    k = share.shape[1]
    pooled = np.zeros((dims, dims))
    total = np.zeros(k)
    for c in range(k):
        mean[c] = 0.0
        lower[c] = 0.0
        for i in range(n):
            total[c] += share[i, c]
            for a in range(dims):
                mean[c, a] += share[i, c] * x[i, a]
        mean[c] /= total[c] + 1e-9
        for i in range(n):
            w = share[i, c]
            if w > 1e-6:
                for a in range(dims):
                    own = w * (x[i, a] - mean[c, a])
                    for b in range(a + 1):
                        lower[c, a, b] += own * (x[i, b] - mean[c, b])
        pooled += lower[c]
    pooled /= n
    prior = dims + 2.0
    for c in range(k):
        log_weight[c] = np.log((total[c] + 1e-3) / n)
        for a in range(dims):
            for b in range(a + 1):
                lower[c, a, b] = (lower[c, a, b] + prior * pooled[a, b]) / (total[c] + prior)
            lower[c, a, a] += 1e-3
        for a in range(dims):  # Cholesky, in place
            for b in range(a + 1):
                value = lower[c, a, b]
                for j in range(b):
                    value -= lower[c, a, j] * lower[c, b, j]
                lower[c, a, b] = np.sqrt(max(value, 1e-6)) if a == b else value / lower[c, b, b]
