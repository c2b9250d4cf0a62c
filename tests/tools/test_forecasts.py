"""The measure of the forecasts, in small; `python -m tools.forecasts` has the numbers of the docs."""

from tools.forecasts import measure


def test_nine_of_ten_forecasts_come_true() -> None:
    precision, recall, lead, outcomes = measure(120, seed=7)
    assert outcomes["foretold"] > 20
    assert precision >= 0.9
    assert recall >= 0.6
    assert lead >= 10
