"""Going live: off by default, one switch, two caps, the key in no output. The service is the simulator on a transport."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from lessonlib.errors import APIError, SpendLimit
from lessonlib.lab import ask, client, explorer, go_live, go_offline
from lessonlib.lab.live import LiveClient, NoKey, Off, Session
from lessonlib.sim import Fault, SimTransport, Simulator
from lessonlib.types import Done, Message, Request

KEY = "sk-inv-Z9y8X7w6Z9y8X7w6Z9y8X7w6"
REQUEST = Request(messages=[Message.user("Hello")], max_tokens=50)


@pytest.fixture(autouse=True)
def offline_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield
    go_offline()


def live(sim: Simulator, said: list[str] | None = None, **options: object) -> Session:
    lines = said if said is not None else []
    settings = {"ask_key": lambda prompt: KEY, "say": lines.append, "transport": SimTransport(sim), **options}
    session = go_live("anthropic", on=True, **settings)  # type: ignore[arg-type]
    assert isinstance(session, Session)
    return session


def test_it_is_off_by_default_and_says_what_on_would_mean() -> None:
    off = go_live("anthropic", ask_key=lambda prompt: pytest.fail("nobody is asked while it is off"))
    assert isinstance(off, Off)
    assert "costs nothing" in repr(off)
    assert "at most 0.50 USD" in repr(off)
    assert not isinstance(client("anthropic"), LiveClient)


def test_while_it_is_on_client_and_ask_go_to_the_service_and_each_request_is_told() -> None:
    sim, said = Simulator(keys=[KEY]), []
    session = live(sim, said)
    assert client("anthropic").generate(REQUEST).text
    assert ask("anthropic", REQUEST)["type"] == "message"
    *_, done = client("anthropic").stream(REQUEST)
    assert isinstance(done, Done)
    assert (session.sent, len(sim.requests), len(said)) == (3, 3, 3)
    assert session.spent > 0
    assert said[-1].startswith("live: request 3 of 20, 0.0")


def test_a_client_can_be_asked_for_live_and_gets_the_same_switch_and_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = Simulator(keys=[KEY])
    live(sim, requests=1)
    assert client("anthropic", live=True).generate(REQUEST).text
    with pytest.raises(SpendLimit):
        client("anthropic", live=True).generate(REQUEST)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert isinstance(client("openai", live=True), LiveClient)
    assert isinstance(client("openai"), LiveClient)  # one switch for the session


def test_other_vendors_and_calls_with_their_own_simulator_stay_offline() -> None:
    sim = Simulator(keys=[KEY])
    live(sim)
    client("openai").generate(REQUEST)
    client("anthropic", Simulator()).generate(REQUEST)
    ask("anthropic", REQUEST, Simulator())
    assert len(sim.requests) == 0
    go_offline("anthropic")
    assert not isinstance(client("anthropic"), LiveClient)


def test_the_cap_on_money_stops_before_anything_is_sent() -> None:
    sim = Simulator(keys=[KEY])
    session = live(sim, limit="0.0001")
    with pytest.raises(SpendLimit):
        client("anthropic").generate(REQUEST)
    with pytest.raises(SpendLimit):
        list(client("anthropic").stream(REQUEST))
    assert len(sim.requests) == 0
    assert session.spent == 0


def test_the_cap_on_requests_counts_failures_too() -> None:
    sim = Simulator(faults=[Fault("status", status=529, at=1)], keys=[KEY])
    live(sim, requests=2)
    with pytest.raises(APIError):
        client("anthropic").generate(REQUEST)
    client("anthropic").generate(REQUEST)
    with pytest.raises(SpendLimit, match="2 of 2 requests"):
        client("anthropic").generate(REQUEST)
    assert len(sim.requests) == 2


def test_the_price_is_told_before() -> None:
    session = live(Simulator(keys=[KEY]))
    price = session.price(REQUEST)
    assert price is not None
    assert Decimal(0) < price < Decimal("0.01")
    assert session.price(REQUEST.replace(max_tokens=100_000)) > price  # type: ignore[operator]
    assert session.sent == 0


def test_the_key_is_asked_for_without_echo_or_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts: list[str] = []
    live(Simulator(keys=[KEY]), ask_key=lambda prompt: prompts.append(prompt) or KEY)
    assert "not shown" in prompts[0]
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    live(Simulator(keys=[KEY]), ask_key=lambda prompt: pytest.fail("the environment has it"))
    assert client("anthropic").generate(REQUEST).text


def test_without_anybody_to_ask_it_says_what_to_set() -> None:
    def nobody(prompt: str) -> str:
        raise RuntimeError("no stdin")

    with pytest.raises(NoKey, match="ANTHROPIC_API_KEY"):
        live(Simulator(), ask_key=nobody)
    with pytest.raises(NoKey, match="stays offline"):
        live(Simulator(), ask_key=lambda prompt: " ")


def test_the_key_is_in_no_text_and_no_tape(tmp_path: Path) -> None:
    said: list[str] = []
    session = live(Simulator(keys=[KEY]), said, tape=tmp_path / "tape")
    list(client("anthropic").stream(REQUEST))
    texts = [repr(session), repr(client("anthropic")), repr(vars(session)), *said]
    texts += [file.read_text(encoding="utf-8") for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(KEY in text for text in texts)
    assert explorer(tmp_path / "tape" / "001", at=-1).moment().state == "DONE"


def test_money_is_no_float_and_vendors_have_names() -> None:
    with pytest.raises(TypeError, match="as text"):
        go_live("anthropic", on=True, limit=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="openai, anthropic, gemini"):
        go_live("acme", on=True)
