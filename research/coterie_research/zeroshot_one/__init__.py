"""The first zero-shot network, that of coterie 0.1.0, whose weights are named ``zeroshot``."""
