"""Split-and-merge moves: a network is taken from where it is missed least and given to a cluster that needs two.

EM alone does not get out of a state in which one network explains two classes and two networks share a third, because
every small change makes the bound worse. A move leaves the number of clusters as it is (Ueda et al., 2000, "SMEM
algorithm for mixture models"):

- The cluster to *merge* is the one without which the bound is least lower: the others take over its rows.
- The cluster to *split* is the one whose latent codes two Gaussians explain best, compared with one. The codes of two
  classes that share a network lie apart, whatever the images look like, and the two Gaussians are the first halves.
- A *trial* trains new networks for the clusters concerned on their own rows by some iterations of EM, once from the
  responsibilities after the move and once from those before. The move is accepted if its bound is higher; held out, if
  there are two folds. Both begin with new networks: trained ones have been fitted to the old partition for so long
  that no other could win.

Shapes as in ``mixture``; M rows and C clusters of a part of the mixture.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from coterie import em
from coterie.generative.mixture import Expectation, Mixture, State
from coterie.generative.vaes import Densities

_ITERATIONS = 4  # of EM in a trial
_FIRST_EPOCHS = 5  # times the epochs of the others: networks that know nothing yet judge badly
_RATE_DECAY = 0.8  # of the learning rate from one of them to the next
_TRIALS = 2  # at most, in one iteration of the mixture
_HEIRS = 2  # clusters that take over most of the rows of a merged one
_MOST_CODES = 4000  # of a cluster, half of them to fit Gaussians and half to compare them
_FEWEST_CODES = 20
_LEAST_VAR = 1e-3  # of codes, whose variance should be 1: dimensions that a network does not use say nothing


@dataclass(frozen=True)
class _Part:
    """New networks for some clusters, trained on their rows alone."""

    networks: Densities
    log_shares_C: Tensor  # among themselves
    bound: float


class MovingMixture(Mixture):
    """A mixture that tries a move before every ``move_every``-th E-step until iteration ``move_until``."""

    def e_step(self, state: State) -> Expectation:
        s = self.settings
        if not 0 < state.iteration <= s.move_until or s.n_clusters < 2:
            return super().e_step(state)
        if state.iteration % s.move_every:
            return replace(super().e_step(state), settled=False)
        log_joint_NK, refused = self.log_joint(state), state.refused
        move = self._move(state, log_joint_NK)
        if move is not None:
            log_joint_NK = self.log_joint(state)
        found = self.expectation(state, log_joint_NK)
        nothing_tried = move is None and state.refused == refused
        return replace(found, move=move, settled=found.settled and nothing_tried)

    def _move(self, state: State, log_joint_NK: Tensor) -> tuple[int, int] | None:
        """Change the state by the first of the most promising moves that is accepted.

        A split is tried with the cheapest merge only: what is not worth that is not worth a dearer one.
        """
        losses_K = _losses(log_joint_NK)
        gains_K = self._gains(state, log_joint_NK)
        tried = 0
        for split in gains_K.argsort(descending=True).tolist():
            merged = next(cluster for cluster in losses_K.argsort().tolist() if cluster != split)
            if gains_K[split] == -torch.inf or tried == _TRIALS:
                break
            if (merged, split) in state.refused:
                continue
            if self._try(state, log_joint_NK, merged, split):
                state.refused = ()
                return merged, split
            state.refused = (*state.refused, (merged, split))
            tried += 1
        return None

    def _gains(self, state: State, log_joint_NK: Tensor) -> Tensor:
        """What a second Gaussian adds to the log-likelihood of held-out codes of each cluster, (K,), per row of all."""
        labels_N = log_joint_NK.argmax(1)
        gains_K = torch.full((self.settings.n_clusters,), -torch.inf, dtype=torch.float64)
        for cluster, count in enumerate(labels_N.bincount(minlength=self.settings.n_clusters).tolist()):
            if count >= _FEWEST_CODES:
                fitted_ML, held_out_ML = self._codes_in_halves(state, labels_N, cluster)
                one, two = (self._gaussians(n, state, fitted_ML).score(held_out_ML) for n in (1, 2))
                gains_K[cluster] = count / len(labels_N) * (two - one)
        return gains_K

    def _try(self, state: State, log_joint_NK: Tensor, merged: int, split: int) -> bool:
        """Whether the move is accepted. If it is, the state has the networks of the trial."""
        labels_N = log_joint_NK.argmax(1)
        others_NK = log_joint_NK.clone()
        others_NK[:, merged] = -torch.inf
        heirs_K = others_NK.argmax(1)[labels_N == merged].bincount(minlength=self.settings.n_clusters)
        most = heirs_K.topk(min(_HEIRS, len(heirs_K))).indices.tolist()
        heirs = [heir for heir in most if heir != split and heirs_K[heir]]
        part = [merged, split, *heirs]
        rows = torch.nonzero(torch.isin(labels_N, torch.tensor(part, device=labels_N.device))).flatten()
        before_MC = log_joint_NK[rows][:, part].softmax(1)
        left_MC = others_NK[rows][:, part].softmax(1)
        two = self._gaussians(2, state, self._codes_in_halves(state, labels_N, split)[0])
        halves_M2 = torch.as_tensor(two.predict_proba(self._codes(state, rows, split))).to(left_MC)
        after_MC = torch.cat([left_MC[:, 1:2] * halves_M2, left_MC[:, 2:]], 1)
        use = f"move {merged} {split}"
        without = self._trained(state, rows, before_MC, use)
        moved = self._trained(state, rows, after_MC, use)
        if not moved.bound > without.bound:
            return False
        self.replace_networks(state, part, moved.networks)
        if self.settings.learned_shares:
            log_shares_K = state.log_shares_K.clone()
            log_shares_K[part] = state.log_shares_K[part].logsumexp(0) + moved.log_shares_C
            state.log_shares_K = log_shares_K
        return True

    @torch.no_grad()
    def _codes(self, state: State, rows: Tensor, cluster: int) -> np.ndarray:
        return state.networks.codes(self.x_ND[rows], slice(cluster, cluster + 1))[0].double().cpu().numpy()

    def _codes_in_halves(self, state: State, labels_N: Tensor, cluster: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes of rows of a cluster, to fit Gaussians and to compare them."""
        rows = torch.nonzero(labels_N == cluster).flatten()
        order = torch.randperm(len(rows), generator=self.generator(state.iteration, f"codes {cluster}"))
        rows = rows[order[:_MOST_CODES].to(rows.device)]
        middle = len(rows) // 2
        return self._codes(state, rows[:middle], cluster), self._codes(state, rows[middle:], cluster)

    def _gaussians(self, n_components: int, state: State, codes_ML: np.ndarray) -> GaussianMixture:
        seed = self.generator(state.iteration, "Gaussians").initial_seed() % 2**32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a trial decides about the halves
            return GaussianMixture(n_components, n_init=3, reg_covar=_LEAST_VAR, random_state=seed).fit(codes_ML)

    def _trained(self, state: State, rows: Tensor, start_MC: Tensor, use: str) -> _Part:
        """New networks after some iterations of EM on some of the rows."""
        s = self.settings
        generator = self.generator(state.iteration, use)
        settings = replace(
            s,
            n_clusters=start_MC.shape[1],
            first_epochs=_FIRST_EPOCHS * s.n_epochs,
            rate_decay=_RATE_DECAY,
            decay_iter=1,
            temperature=1.0,
            start_evidence=False,
            revive_until=0,
            seed=generator.initial_seed(),
        )
        mixture = Mixture(self.x_ND[rows], start_MC, settings)
        mixture.fold_N = self.fold_N[rows]  # what is held out remains so
        networks = state.networks.fresh(s.folds * settings.n_clusters, generator)
        begun = mixture.begin(networks.to(self.x_ND.device))
        run = em.run(begun, mixture.e_step, mixture.m_step, max_iter=_ITERATIONS)
        return _Part(networks, run.state.log_shares_K, mixture.e_step(run.state).objective)


def _losses(log_joint_NK: Tensor) -> Tensor:
    """How much lower the mean bound is without each cluster, (K,)."""
    bound = log_joint_NK.logsumexp(1).double().mean()
    losses = []
    for cluster in range(log_joint_NK.shape[1]):
        others_NK = torch.cat([log_joint_NK[:, :cluster], log_joint_NK[:, cluster + 1 :]], 1)
        losses.append(bound - others_NK.logsumexp(1).double().mean())
    return torch.stack(losses).cpu()
