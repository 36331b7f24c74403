"""Rules from the name in a certificate to a principal: what Apache Kafka 4.3's own SslPrincipalMapper gave for each."""

from __future__ import annotations

import pytest

from barnabas.errors import ConfigError
from barnabas.security.principals import NoMatchingRule, PrincipalRules

ALICE = "CN=Alice,OU=Ops,O=Acme,C=DE"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", ALICE, ALICE),
        (" DEFAULT ", "CN=a", "CN=a"),
        ("DEFAULT,", "CN=a", "CN=a"),
        (",DEFAULT", "CN=a", "CN=a"),
        ("RULE:^CN=(.*?),.*$/$1/", ALICE, "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", ALICE, "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U", ALICE, "ALICE"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=.*$/$1@$2.$3/L", ALICE, "alice@ops.acme"),
        ("RULE:^CN=Bob.*$/bob/,DEFAULT", ALICE, ALICE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?),OU=Ops.*$/x-$1/ , DEFAULT", ALICE, "x-Alice"),
        ("DEFAULT,RULE:^CN=(.*)$/$1/L", "CN=A", "CN=A"),
        ("RULE:^cn=(.*?),.*$/$1/,DEFAULT", ALICE, ALICE),
        ("RULE:.*/x/", ALICE, "xx"),  # Java's replaceAll also finds the empty match at the end
        ("RULE:^CN=(.*?),(.*)$/$10/", ALICE, "Alice0"),
        ("RULE:^CN=(.*?),(.*)$/$12/", ALICE, "Alice2"),
        ("RULE:^CN=(.*?),(.*)$/$3-$1/", ALICE, "$3-Alice"),
        ("RULE:^(.*)$/$0/", "CN=a", "CN=a"),
        ("RULE:^CN=(.*)$/$01/", "CN=a", "a"),
        ("RULE:^CN=(?<n>.*)$/${n}/", "CN=a", "a"),
        ("RULE:^CN=(b)?(.*)$/$1-$2/", "CN=a", "-a"),
        (r"RULE:^CN=(.*?),.*$/a\$b$1/", ALICE, "a$bAlice"),
        (r"RULE:^CN=(.*?),.*$/\$1/", ALICE, "$1"),
        (r"RULE:^CN=(a\/b)$/$1/", "CN=a/b", "a/b"),
        (r"RULE:^CN=(.*)$/x\/$1/", "CN=a", "x/a"),
        (r"RULE:^CN=(.*)$/a\\b/", "CN=a", r"a\b"),
        ("RULE:^CN=(.*),x$/$1/,DEFAULT", "CN=a,x", "a"),
        ("RULE:^CN=(.*)$/pre $1 post/", "CN=a", "pre a post"),
        ("RULE:^CN=(.*)$//", "CN=a", ""),
    ],
)
def test_the_first_rule_that_fits_gives_the_name(rules: str, name: str, principal: str) -> None:
    assert PrincipalRules(rules).name_of(name) == principal


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", ALICE),
        ("RULE:^CN=Bob.*$/bob/", ALICE),
        ("RULE:CN/x/", "CN=a"),
        ("RULE:/x/", "CN=a"),
        (r"RULE:^CN=([^\/]*)$/$1/", "CN=a/b"),
    ],
)
def test_a_name_that_no_rule_is_for_has_no_principal(rules: str, name: str) -> None:
    with pytest.raises(NoMatchingRule, match=r"no rule of ssl\.principal\.mapping\.rules matches CN="):
        PrincipalRules(rules).name_of(name)


@pytest.mark.parametrize(
    "rules",
    [
        "BAD",
        "default",
        "DEFAULT,BAD",
        "RULE:^CN=(.*)$",
        "RULE:^CN=(.*)$/$1",
        "RULE:^CN=(.*)$/$1/X",
        "RULE:^CN=(.*)$/$1/LU",
        "RULE:^CN=(.*)$/$1/L/",
        "RULE:^CN=(.*)$/$1/L DEFAULT",
        "RULE:[/x/",
        "RULE:^CN=(.*)$/$/",
        "RULE:^CN=(.*)$/$a/",
        "RULE:^CN=(.*)$/${n}/",
    ],
)
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalRules(rules)
