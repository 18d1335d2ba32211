from coterie.wording import shown


def test_control_characters_are_shown_and_letters_stay():
    assert shown("\x1b[31mrot\x07\n") == "\\x1b[31mrot\\x07\\n"
    assert shown("größe 数") == "größe 数"
    assert shown("\u202egnp.exe\x9b2J") == "\\u202egnp.exe\\x9b2J"
