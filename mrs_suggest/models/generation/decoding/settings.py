"""How suggestions are decoded: the settings of a search, checked when they are made."""

from dataclasses import dataclass

from mrs_suggest.common.errors import InputError

# Beyond these, sums come near the -1e9 that generate gives to unused beams, and float32 loses log-probabilities.
LARGEST_DIVERSITY = 10_000.0
LARGEST_LENGTH_PENALTY = 3.0


@dataclass(frozen=True)
class Decoding:
    """How suggestions are decoded; every default names its source.

    Args:
        beams: hypotheses that are kept at each step (official script: 5).
        groups: groups of `beams / groups` beams each, decoded one after the other (Vijayakumar et al. 2018); 1 is
            plain beam search.
        diversity_penalty: Hamming diversity: subtracted from a token's log-probability once for each beam of an
            earlier group that chose it at this step for the same message. It needs groups; with 0 all groups are equal.
        no_repeat_ngram: no n-gram of this many tokens comes twice in a reply; 0 allows all (fairseq).
        min_tokens: of the reply, end token not counted; 0 allows the empty reply (ours; `suggestions` drops it).
        max_tokens: of the reply, end token not counted (ours, above the 30 that the retriever reads).
        length_penalty: exponent of the length, end token counted, that a log-probability is divided by (fairseq: 1).
        blocked: words or phrases never suggested; see `blocked_token_ids` and `suggestions`.
        batch_size: messages decoded together; changes speed and memory, not results.
    """

    beams: int = 5
    groups: int = 1
    diversity_penalty: float = 0.0
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    max_tokens: int = 40
    length_penalty: float = 1.0
    blocked: tuple[str, ...] = ()
    batch_size: int = 32

    def __post_init__(self) -> None:
        for name in ("beams", "groups", "max_tokens", "batch_size", "no_repeat_ngram", "min_tokens"):
            value, least = getattr(self, name), int(name not in ("no_repeat_ngram", "min_tokens"))
            if not isinstance(value, int) or value < least:
                raise InputError(f"--{name}: expected a whole number from {least}, found {value!r}.")
        for name, smallest, largest in (
            ("diversity_penalty", 0.0, LARGEST_DIVERSITY),
            ("length_penalty", -LARGEST_LENGTH_PENALTY, LARGEST_LENGTH_PENALTY),
        ):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not smallest <= value <= largest:  # NaN fails too
                raise InputError(f"--{name}: expected a number from {smallest:g} to {largest:g}, found {value!r}.")
        if self.beams % self.groups:
            raise InputError(f"--groups {self.groups}: must divide --beams, which is {self.beams}; change one of them.")
        if self.diversity_penalty and self.groups == 1:
            raise InputError(f"--diversity_penalty {self.diversity_penalty:g}: needs --groups of 2 or more, found 1.")
        if self.min_tokens > self.max_tokens:
            raise InputError(f"--min_tokens {self.min_tokens}: exceeds --max_tokens {self.max_tokens}; lower it.")
        if isinstance(self.blocked, str) or not all(isinstance(word, str) and word.strip() for word in self.blocked):
            raise InputError(f"--blocked: expected a list of words or phrases, none empty, found {self.blocked!r}.")
        object.__setattr__(self, "blocked", tuple(self.blocked))


@dataclass(frozen=True)
class Sampling:
    """How texts are drawn.

    Args:
        samples: of each source; equal ones count.
        temperature: divides the logits; 1 draws from the model itself.
        top_p: each token is drawn from the smallest set of the most probable ones whose probability reaches it
            (Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1); 1 draws from all.
    """

    samples: int = 50
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError(f"--samples {self.samples}: expected a whole number from 1.")
        if not 0.01 <= self.temperature <= 100:  # refuses NaN too
            raise InputError(f"--temperature {self.temperature:g}: expected a number from 0.01 to 100.")
        if not 0 < self.top_p <= 1:
            raise InputError(f"--top_p {self.top_p:g}: expected a share above 0 and at most 1.")
