"""The measure flow: Gaussian mixtures recovered by a pretrained transformer whose step size follows the noise."""
