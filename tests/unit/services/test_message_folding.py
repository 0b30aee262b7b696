"""Folding of messages: what differs between messages of one cause goes, what tells causes apart stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.services.message_folding import MAX_CHARACTERS, fold_message


@pytest.mark.parametrize(
    ("message", "folded", "because"),
    [
        ("failed after 3 attempts", "failed after <n> attempts", "numbers differ"),
        ("took 1.5s, 30s, 2m30s", "took <n>s, <n>s, <n>", "so do durations"),
        ("12% of 1,000 (3/5), at -7", "<n>% of <n> (<n>/<n>), at <n>", "and other figures"),
        ("no route to 10.0.12.7", "no route to <ip>", "addresses differ"),
        ("no route to 10.0.0.0/8, 10.1.2.3:443.", "no route to <ip>, <ip>.", "with masks and ports, too"),
        ("no route to fe80::1 or ::1", "no route to <ip> or <ip>", "and of the newer kind"),
        ("std::string and a::b are words", "std::string and a::b are words", "colons alone are no address"),
        ("request 123e4567-e89b-12d3-a456-426614174000", "request <id>", "ids differ"),
        ("pod dns-7f9c6d5b8-x2k4j of vpc-0a1b2c3d", "pod <id> of <id>", "also those with a prefix"),
        ("commit 3f9a2b1c at 0xFF", "commit <hex> at <hex>", "hex differs"),
        ("a deadbeef beefcafe", "a deadbeef beefcafe", "words without digits are words"),
        ("zone \"a.b\", 'c d', `e` and «f»", "zone <name>, <name>, <name> and <name>", "quoted names differ"),
        ("it's 'it' that can't", "it's <name> that can't", "an apostrophe is no quote"),
        ("at 2025-10-17T12:00:05.5Z and 2025-10-17 12:00", "at <time> and <time>", "times differ"),
        ("Route53 in eu-west-1a, m5.xlarge, v1.28.3", "Route53 in eu-west-1a, m5.xlarge, v1.28.3", "these tell apart"),
        ("  a\n\tb  ", "a b", "blanks mean nothing"),
        ("", "", "nothing is nothing"),
    ],
)
def test_fold(message: str, folded: str, because: str) -> None:
    assert fold_message(message) == folded, because


def test_the_names_of_the_resource_itself_go() -> None:
    names = ("cls-1", "", "my-pay")
    assert fold_message("my-pay: api.my-pay.com of cls-1", names) == "<name>: api.<name>.com of <name>"
    assert fold_message("amy-pay my-pay-2 cls-12", names) == "amy-pay my-pay-2 cls-12", "but not parts of other words"


def test_only_the_beginning_counts() -> None:
    assert fold_message("x" * MAX_CHARACTERS + "one") == fold_message("x" * MAX_CHARACTERS + "another")


VARYING = {
    "numbers": st.integers(0, 10**12).map(str),
    "addresses": st.ip_addresses(v=4).map(str),
    "ids": st.uuids().map(str),
    "names": st.text("abc XYZ-.9", max_size=9).map(lambda text: f'"{text}"'),
    "times": st.datetimes().map(lambda time: time.isoformat() + "Z"),
}


@pytest.mark.parametrize("varying", VARYING.values(), ids=VARYING)
@given(data=st.data())
def test_messages_that_differ_in_such_things_only_are_folded_alike(
    varying: st.SearchStrategy[str], data: st.DataObject
) -> None:
    first, second = (fold_message(f"zone {data.draw(varying)}: failed") for _ in range(2))
    assert first == second
    assert fold_message(first) == first, "what is folded stays so"


@given(st.text(max_size=80))
def test_any_text_can_be_folded(message: str) -> None:
    assert len(fold_message(message)) <= 6 * len(message) + 6
