"""Tables as people have them: read, guess the kinds of columns, encode as points."""
