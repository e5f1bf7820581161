"""Which data train, validate and test a model: the paper's four settings, free choices, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.training.reply.options import SETTINGS, Source, TrainingPlan, make_plan
from mrs_suggest.training.sampling import shares
from tests.cases import cases

TEN = tuple(LANGUAGES)
TRANSLATED = tuple(f"mt-{code}" for code in TEN if code != "en")
WHOLE = (*TRANSLATED, *(f"{code}-responses" for code in TEN), *reversed(TEN))  # in no order


def trained_on(plan: TrainingPlan) -> list[str]:
    return [source.config for source in plan.sources]


def test_languages_without_a_setting_and_one_by_itself() -> None:
    plan = make_plan(WHOLE)
    assert plan.setting is None
    assert trained_on(plan) == list(TEN) == list(plan.validation) == list(plan.test)
    assert plan.sampling_alpha == 1.0
    plan = make_plan(WHOLE, languages=["ja", "en"])
    assert trained_on(plan) == ["ja", "en"] == list(plan.validation) == list(plan.test)
    plan = make_plan(WHOLE, "monolingual", ["nl"])
    assert (trained_on(plan), plan.validation, plan.test) == (["nl"], ("nl",), ("nl",))
    assert make_plan(["ja", "ja-responses"], "monolingual").test == ("ja",)


def test_zero_shot_trains_and_validates_on_english() -> None:
    plan = make_plan(WHOLE, "zero_shot")
    assert (trained_on(plan), plan.validation, plan.test) == (["en"], ("en",), TEN)
    assert make_plan(WHOLE, "zero_shot", ["ru"]).test == ("ru",)
    assert make_plan(WHOLE, "zero_shot", ["ru"], validation=["ru"]).validation == ("ru",)


def test_mt_trains_on_translated_pairs_and_checks_on_real_ones() -> None:
    plan = make_plan(WHOLE, "mt", ["it"])
    assert plan.sources == (Source("it", translated=True),)
    assert (plan.validation, plan.test) == (("it",), ("it",))
    plan = make_plan(WHOLE, "mt")
    assert trained_on(plan) == list(TRANSLATED)
    assert plan.validation == plan.test == TEN[1:]
    plan = make_plan(["en", "es", "de", "mt-de"], "mt")  # `all` is what is there
    assert (trained_on(plan), plan.test) == (["mt-de"], ("de",))
    plan = make_plan(WHOLE, "mt", ["en", "es"])  # English may be tested, but there is no English to train on
    assert (trained_on(plan), plan.validation, plan.test) == (["mt-es"], ("es",), ("en", "es"))


def test_multilingual_takes_the_five_large_languages_in_equal_shares() -> None:
    plan = make_plan(WHOLE, "multilingual")
    assert trained_on(plan) == ["en", "es", "de", "pt", "fr"] == list(plan.validation)
    assert plan.test == TEN
    assert plan.sampling_alpha == 0.0
    assert make_plan(WHOLE, "multilingual", sampling_alpha=0.3).sampling_alpha == 0.3
    plan = make_plan(WHOLE, "multilingual", ["ja"], train=["en", "mt-ja"])
    assert (trained_on(plan), plan.validation, plan.test) == (["en", "mt-ja"], ("en", "ja"), ("ja",))


def test_real_and_translated_pairs_mix() -> None:
    plan = make_plan(WHOLE, languages=["es"], train=["en", "mt-es"], validation=["en"])
    assert plan.sources == (Source("en"), Source("es", translated=True))
    assert (plan.validation, plan.test) == (("en",), ("es",))
    plan = make_plan(WHOLE, "zero_shot", train=["en", "mt-es"])
    assert (trained_on(plan), plan.validation) == (["en", "mt-es"], ("en",))
    generated = ["qab", "en", "qaa", "en-responses", "mt-qaa", "text-qaa"]
    assert make_plan(generated, "zero_shot").test == ("en", "qab", "qaa")
    assert trained_on(make_plan(generated, "mt", ["qaa"])) == ["mt-qaa"]
    assert trained_on(make_plan(generated, train=["en", "mt-qaa"])) == ["en", "mt-qaa"]


SMALL = ["en", "es", "mt-de", "mt-es", "en-responses"]


@pytest.mark.parametrize(("wish", "sentence"), cases(__file__, "test_impossible_wishes_are_refused_by_option"))
def test_impossible_wishes_are_refused_by_option(wish: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make_plan(SMALL, **wish)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("configs", "wish", "sentence"), cases(__file__, "test_data_that_lack_what_the_setting_needs"))
def test_data_that_lack_what_the_setting_needs(configs: list[str], wish: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make_plan(configs, **wish)  # type: ignore[arg-type]


CODES = ["en", "es", "de", "ja", "all", "xx"]
SOURCES = ["en", "es", "mt-es", "mt-ja", "mt-en", "ja"]


@given(
    lacking=st.sets(st.sampled_from([*TEN, *TRANSLATED]), max_size=3) | st.just({*TEN[3:], *TRANSLATED[1:]}),
    setting=st.sampled_from([None, *SETTINGS]),
    languages=st.lists(st.sampled_from(CODES), max_size=3),
    train=st.none() | st.lists(st.sampled_from(SOURCES), max_size=3),
    validation=st.none() | st.lists(st.sampled_from(CODES), max_size=2),
    alpha=st.none() | st.floats(),
)
def test_a_plan_can_be_fulfilled_or_is_refused(
    lacking: set[str], setting: str | None, languages: list[str], train: list[str] | None,
    validation: list[str] | None, alpha: float | None,
) -> None:  # fmt: skip
    configs = {*TEN, *TRANSLATED} - lacking
    plan, refusal = None, ""
    try:
        plan = make_plan(configs, setting, languages, train, validation, alpha)
    except InputError as error:
        refusal = str(error)
    if plan is None:
        assert refusal.startswith("--")
        assert refusal.endswith(".")
        return
    for names in (trained_on(plan), plan.validation, plan.test):
        assert names
        assert set(names) <= configs
        assert len(set(names)) == len(names)
    assert 0 <= plan.sampling_alpha <= 1
    assert languages == ["all"] or list(plan.test) == languages
    assert train is None or trained_on(plan) == train
    assert validation in (None, ["all"]) or list(plan.validation) == validation
    assert alpha is None or plan.sampling_alpha == alpha
    if setting == "mt" and train is None:
        assert all(source.translated for source in plan.sources)


@pytest.mark.parametrize(("sizes", "alpha", "sentence"), cases(__file__, "test_shares_of_nothing_are_refused"))
def test_shares_of_nothing_are_refused(sizes: list[int], alpha: float, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        shares(sizes, alpha)
