"""Networks that run EM in context: constructed (theory) and pretrained."""
