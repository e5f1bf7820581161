"""What keeps a suggester silent: sensitive messages, unfit replies, and the reasons in the answers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.answering import ServedModel, Suggestion, reply_texts
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.guard.guard_space import ALARMS, LEAST_RECALL, GuardSpace
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases


@pytest.fixture(scope="module")
def shipped() -> Suggester:
    return Suggester.from_pretrained("everyday-retriever")


class Fixed(ServedModel):
    """Suggests the same replies, best first, whatever the message is."""

    def __init__(self, replies: Sequence[str], most: int = 99) -> None:
        self.replies, self._most = list(replies), most
        self.asked: list[tuple[list[str], int]] = []

    @property
    def languages(self) -> list[str]:
        return ["en", "pl"]

    def most(self, k: int) -> int:
        return min(k, self._most)

    def suggest(self, messages: Sequence[str], language: str, k: int = 3) -> list[list[Suggestion]]:
        self.asked.append((list(messages), k))
        row = [Suggestion(reply, -float(rank)) for rank, reply in enumerate(self.replies[:k])]
        return [row if message.strip() else [] for message in messages]


def test_a_sensitive_message_gets_no_suggestion_and_a_reason() -> None:
    model = Fixed(["Thank you so much!", "The help desk can fix that for you.", "Yes"])
    messages = ["kill yourself", "Coming?", "I lost my job today", " "]
    answers = Suggester(model).suggest(messages, "en")
    assert [answer.reason for answer in answers] == ["self_harm", None, "hardship", "blank"]
    assert [len(answer) for answer in answers] == [0, 3, 0, 0]
    assert model.asked == [(["Coming?"], 3)], "the model never sees a message that is not answered"
    off = Suggester(model, guard=False).suggest(messages, "en")
    assert [(len(answer), answer.reason) for answer in off] == [(3, None)] * 3 + [(0, "blank")]


@pytest.mark.parametrize("unfit", cases(__file__, "test_the_next_best_takes_the_place_of_an_unfit_suggestion"))
def test_the_next_best_takes_the_place_of_an_unfit_suggestion(unfit: str) -> None:
    model = Fixed(["Yes", unfit, "No", "Maybe", "Later"])
    answers = Suggester(model).suggest(["Hi", "Hello"], "en")
    assert reply_texts(answers) == [["Yes", "No", "Maybe"]] * 2
    assert reply_texts(Suggester(model, guard=False).suggest(["Hi"], "en")) == [["Yes", unfit, "No"]]


def test_what_the_message_says_may_be_repeated() -> None:
    model = Fixed(["Yes, 5 pm on Monday in Paris!", "No", "Maybe"])
    suggester = Suggester(model)
    assert len(suggester.suggest(["Shall we meet in Paris on Monday at 5?"], "en")[0]) == 3
    assert reply_texts(suggester.suggest(["Shall we meet in Paris on Monday at 6?"], "en")) == [["No", "Maybe"]]


def test_a_model_without_more_to_say_gives_fewer() -> None:
    model = Fixed(["Shit", "Yes", "Fuck", "Well, shit.", "No"], most=4)
    assert reply_texts(Suggester(model).suggest(["Hi"], "en")) == [["Yes"]]
    assert [k for _, k in model.asked] == [3, 4]
    model = Fixed(["Tak", "https://example.org", "Nie"])
    assert reply_texts(Suggester(model).suggest(["Cześć"], "pl")) == [["Tak", "Nie"]]


def test_the_lists_of_the_language_that_a_message_is_in_count_where_the_caller_names_another(tmp_path: Path) -> None:
    class Bilingual(Fixed):
        @property
        def languages(self) -> list[str]:
            return ["en", "es"]

    texts = {"en": ["I want to see you", "kill the light"], "es": ["quiero verte pronto", "ya me voy a casa"]}
    LanguageDetector.train(texts).save(tmp_path)
    message = "ya no quiero vivir, quiero morirme"
    suggester = Suggester(Bilingual(["Yes", "No", "Maybe"]), tmp_path)
    assert [answer.reason for answer in suggester.suggest([message, "quiero verte"], "en")] == ["self_harm", None]
    assert suggester.suggest(["I want to kill myself"], "es")[0].reason == "self_harm"
    assert Suggester(Bilingual(["Yes"])).suggest([message], "en")[0].reason is None, "without a detector"


def test_an_answer_says_whether_the_guard_or_the_model_left_it_empty() -> None:
    held, empty = Suggester(Fixed(["Shit", "At 8 pm."])), Suggester(Fixed([]))
    answers = [*held.suggest(["Coming?", "At 8 pm?"], "en"), *empty.suggest(["Coming?"], "en")]
    assert [answer.reason for answer in answers] == ["held_back", None, "no_replies"]


@pytest.mark.parametrize(
    "message",
    ["Sov gott min vän", "Hoppas du sov gott", "Hoppas ni sovit gott i natt", "God natt och sov gott, kram",
     "Dröm sött och sov gott", "Sov gott alla barn"],
)  # fmt: skip
def test_wishing_good_night_in_swedish_is_not_a_threat(shipped: Suggester, message: str) -> None:
    """Example threats end with "Sov gott.", so the linear model took the wish for one."""
    assert [shipped.suggest([message], language)[0].reason for language in ("sv", None)] == [None, None]
    assert shipped.suggest(["Du bor på Ekgatan 3 va? Sov gott."], "sv")[0].reason == "threat"


def test_the_guard_is_true_false_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"guard='off': expected True, False or a folder of lists\."):
        Suggester.from_pretrained("everyday-retriever", guard="off")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "en.yaml").write_text('grief: ["lost my teddy"]\n')
    suggester = Suggester.from_pretrained("everyday-retriever", guard=str(tmp_path))
    assert suggester.suggest("I lost my teddy", "en").reason == "grief"


def test_lists_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    own = tmp_path / "lists" / "en.yaml"
    own.write_text('grief: ["(lost/missing) my [old] teddy*"]\nneutral: {grief: ["I am thinking of you."]}\n')
    suggester = Suggester(Fixed(["Yes", "No", "Shit"]), guard=tmp_path)
    first, second, third = suggester.suggest(["I lost my old teddy bear", "kill yourself", "Teddy?"], "en")
    assert (reply_texts([first]), first.reason) == ([["I am thinking of you."]], "grief")
    assert (second.reason, len(second), len(third)) == (None, 3, 3), "the file takes the place of the package's"
    for text, problem in cases(__file__, "test_lists_of_ones_own"):
        own.write_text(text)
        with pytest.raises(InputError, match="en.yaml") as error:
            Suggester(Fixed([]), guard=tmp_path).suggest(["hi"], "en")
        assert problem in str(error.value)
    with pytest.raises(InputError, match="no lists/ or prototypes/ folder"):
        Suggester(Fixed([]), guard=tmp_path / "lists")


class Spaced(Fixed):
    """A model whose encoder has one axis for sadness, by the words of `SAD`, and one for length."""

    SAD = ("tumba", "llanto", "pena")

    def __init__(self, replies: Sequence[str]) -> None:
        super().__init__(replies)
        self.encoded: list[str] = []

    def message_vectors(self, messages: Sequence[str]) -> np.ndarray:
        self.encoded += messages
        rows = [[float(any(word in text for word in self.SAD)), len(text) / 100] for text in messages]
        return np.array(rows, np.float32)


def prototypes(folder: Path, grief: Sequence[str] = Spaced.SAD) -> Path:
    place = folder / "prototypes"
    place.mkdir(exist_ok=True)
    sad = "".join(f"  - {text} {number}\n" for number, text in enumerate(tuple(grief) * 4))
    glad = "".join(f"  - hola {'que tal ' * number}\n" for number in range(12))
    for language in LANGUAGES_WITH_PROTOTYPES:
        (place / f"{language}.yaml").write_text(f"grief:\n{sad}everyday:\n{glad}", encoding="utf-8")
    return folder


LANGUAGES_WITH_PROTOTYPES = tuple(GuardData().prototypes)


def test_examples_in_the_encoders_space_serve_a_language_without_lists(tmp_path: Path) -> None:
    model = Spaced(["Tak", "Nie"])
    suggester = Suggester(model, guard=prototypes(tmp_path))
    answers = suggester.suggest(["llanto", "hola", "mucha pena"], "pl")
    assert [answer.reason for answer in answers] == ["grief", None, "grief"]
    assert suggester.guard.space.recall == 1


def test_a_stored_space_is_used_until_the_examples_are_others(tmp_path: Path) -> None:
    own = prototypes(tmp_path)
    first, model = Spaced(["Tak"]), Spaced(["Tak"])
    GuardSpace.fit(first.message_vectors, GuardData(own).prototypes).save(tmp_path)
    assert Suggester(model, tmp_path, guard=own).suggest(["pena"], "pl")[0].reason == "grief"
    assert model.encoded == ["pena"], "no example is encoded"
    prototypes(tmp_path, ("otra",))
    assert Suggester(model, tmp_path, guard=own).suggest(["pena"], "pl")[0].reason is None
    assert len(model.encoded) > 100
    (tmp_path / "guard" / "space.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match="guard: damaged"):
        Suggester(model, tmp_path).suggest(["pena"], "pl")


def test_a_model_without_a_space_of_this_version_has_the_lists_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Spaced(["Tak"])
    answers = Suggester(model, tmp_path).suggest(["pena", "llanto"], "pl")
    assert [answer.reason for answer in answers] == [None, None]
    assert len(model.encoded) < 10, "examples are not encoded while somebody waits for an answer"
    (line,) = capsys.readouterr().err.splitlines()
    assert f"mrs models guard {tmp_path}" in line


def test_a_space_that_tells_nothing_apart_keeps_quiet() -> None:
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(list("abcdefgh"), 6)) for _ in range(240)]
    space = GuardSpace.fit(
        lambda rows: np.zeros((len(rows), 2)), {"en": {"grief": texts[:120], "everyday": texts[120:]}}
    )
    assert space.recall < LEAST_RECALL
    assert space.reasons(texts, np.zeros((240, 2))) == [None] * 240


def test_words_are_told_apart_where_the_vectors_are_all_the_same() -> None:
    sad, glad = (
        ["he died", "she died young", "they died", "it died"],
        ["he sang", "she sang well", "they sang", "it sang"],
    )
    examples = {"en": {"grief": sad * 3, "everyday": glad * 3}}
    space = GuardSpace.fit(lambda rows: np.ones((len(rows), 2)), examples)
    assert space.reasons(["we diiied", "we sang"], np.ones((2, 2))) == ["grief", None]


def test_a_vector_far_from_all_examples_says_nothing() -> None:
    sad, glad = ["he died", "she died young", "they died"] * 4, ["he sang", "she sang well", "they sang"] * 4

    def encode(rows: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.0] if "died" in row else [-1.0, 0.0] for row in rows])

    space = GuardSpace.fit(encode, {"en": {"grief": sad, "everyday": glad}})
    far = np.array([[50.0, 0.0]] * 4)
    assert space.reasons(["we died", "we sang", "🎉🎉", ""], far) == ["grief", None, None, None]


def test_the_threshold_is_what_few_unseen_everyday_messages_exceed() -> None:
    generator = np.random.default_rng(1)
    drawn = {"grave": generator.normal(1, 1, (400, 2)), "plain": generator.normal(-1, 1, (400, 2))}

    def encode(rows: list[str]) -> np.ndarray:
        return np.stack([drawn[row.split()[0]][int(row.split()[1])] for row in rows])

    rows = {kind: [f"{kind} {number}" for number in range(400)] for kind in drawn}
    examples = {"en": {"threat": rows["grave"][:200], "everyday": rows["plain"][:200]}}
    unseen = rows["plain"][200:]
    space = GuardSpace.fit(encode, examples, unseen=unseen)
    alarms = sum(reason is not None for reason in space.reasons(unseen, encode(unseen)))
    assert alarms <= ALARMS * len(unseen) + 1
    assert space.reasons(rows["grave"][200:], encode(rows["grave"][200:])).count("threat") > 150


def test_the_data_s_own_messages_are_answered() -> None:
    sad, glad = ["he died", "she died young", "they died"] * 4, ["he sang", "she sang well", "they sang"] * 4
    examples, own = {"en": {"grief": sad, "everyday": glad}}, ["the chat died again"] * 4

    def silenced(space: GuardSpace) -> bool:
        return space.reasons(own, np.zeros((4, 2)))[0] is not None

    def encode(rows: list[str]) -> np.ndarray:
        return np.zeros((len(rows), 2))

    assert silenced(GuardSpace.fit(encode, examples))
    assert not silenced(GuardSpace.fit(encode, examples, own=own))


def test_the_embedded_model_is_silent_where_it_used_to_hurt(shipped: Suggester) -> None:
    answers = shipped.suggest(["kill yourself", "I lost my job today", "my phone died, are you coming?"], "en")
    assert [(answer.reason, len(answer)) for answer in answers] == [("self_harm", 0), ("hardship", 0), (None, 3)]
    hurt = Suggester.from_pretrained("everyday-retriever", guard=False).suggest(["kill yourself"], "en")
    assert (hurt[0].reason, len(hurt[0])) == (None, 3)


def test_a_reply_is_judged_anew_for_each_message_and_list() -> None:
    guard = Guard(GuardData(), Fixed([]), None)
    for _ in range(2):
        assert guard.fits("See you at 20:30!", "Does 20:30 suit you?", "en")
        assert not guard.fits("See you at 20:30!", "When?", "en")
        assert guard.fits("Yes!", "When?", "en")
    fits = [guard.fits("See you on Monday!", "When?", language) for language in ("en", "pl")]
    assert fits == [False, True], "pl has no lists"
    suggester = Suggester(Fixed(["Yes, at 20:30."]))
    for message, replies in [("When?", []), ("At 20:30?", ["Yes, at 20:30."]), ("When?", [])]:
        assert suggester.suggest(message, "en").replies == replies
