"""Section 3 of He et al. (2025) and its appendices: the errors of the constructed networks beside the bounds."""
