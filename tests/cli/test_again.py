"""A command that is repeated can be pasted, or says what is left out."""

from __future__ import annotations

from floodmark.cli.again import again


def test_more_options_stand_before_the_arguments_of_a_script() -> None:
    given = ("check", "a place", "app.py", "--", "--day", "1")
    assert again(given, "--rehearse") == ("floodmark check 'a place' app.py --rehearse -- --day 1")


def test_what_is_hidden_has_to_be_put_in_again() -> None:
    shown = again(("repair", "s3://b/ck", "--storage", "secret=abc12345xyz"), "--execute")
    command, hint = shown.splitlines()
    assert command == "floodmark repair s3://b/ck --storage secret=*** --execute"
    assert hint == "  Put your own value in the place of each ***."
    assert "abc12345xyz" not in shown


def test_stars_of_the_user_are_no_secret() -> None:
    assert again(("lint", "***.py")) == "floodmark lint '***.py'"
