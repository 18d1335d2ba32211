"""The theory of He et al. (2025), running: its layers, its input matrix, and the Transformers of Theorems 3.1 and 3.2.

``modules`` holds Definitions 2.1-2.5, ``context`` the rows of the input matrix H, ``approximation`` sums of sigmoid
units and the softmax as a hardmax (Lemmas A.1-A.3 and B.1), ``expectation`` and ``maximisation`` the weights with
their proofs, ``construction`` the whole networks, ``comparison`` Lloyd's algorithm beside them, ``checks`` experiments.

The paper writes tokens as columns; here they are rows, as everywhere in the library.
"""
