"""The options of a retriever's ranker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.generation.generator import MOST_SUGGESTIONS
from mrs_suggest.suggest.ranking.choice import CHOICES
from mrs_suggest.suggest.ranking.language_ranker import PARTS
from mrs_suggest.suggest.ranking.memory import PROTOTYPES
from mrs_suggest.training.options import require_least, require_one_of
from mrs_suggest.training.reply.options import ReplyArguments
from mrs_suggest.training.retrieval.ranker_tuning import MOST_REMEMBERED, RankerOptions

GENERATED = SUGGESTIONS  # the search keeps five beams in any case, so as many replies cost the same


@dataclass
class RankerArguments(ReplyArguments):
    """Whether suggestions come from a ranker over several scores, and what it remembers and mixes."""

    advanced: ClassVar[tuple[str, ...]] = (
        "ranker_parts",
        "memory_dimension",
        "memory_prototypes",
        "memory_messages",
        "generated",
    )
    ranker: bool = field(
        default=False,
        metadata={
            "help": "remember the training messages, mix several scores with weights from validation and choose three "
            "suggestions that complement each other (ours; the paper suggests the three best direct scores)"
        },
    )
    ranker_parts: list[str] = field(
        default_factory=lambda: list(PARTS),
        metadata={"help": f"what the ranker mixes, of {', '.join(PARTS)} (default: all)"},
    )
    choice: str = field(
        default=CHOICES[0],
        metadata={
            "help": "how a ranker chooses suggestions: expected (largest expected similarity of the best one, Towle "
            "and Zhou 2023) or top (best scores)"
        },
    )
    memory_dimension: int | None = field(
        default=None,
        metadata={"help": "dimension of the remembered vectors, on their principal axes (default: the encoder's)"},
    )
    memory_prototypes: int = field(
        default=PROTOTYPES, metadata={"help": "messages that are remembered per reply, the most typical ones (ours)"}
    )

    memory_messages: int = field(
        default=MOST_REMEMBERED,
        metadata={"help": "messages of a language that are remembered at most; search stays exact (ours)"},
    )
    generator: str | None = field(
        default=None,
        metadata={
            "help": "a trained generator (a folder, ORG/NAME or ORG/NAME@REVISION) that scores the ranker's best "
            "candidates and adds its own; it is copied into the run (generate, then rerank: paper, section 6)"
        },
    )
    generated: int | None = field(
        default=None,
        metadata={
            "help": "replies of the generator that become candidates; 0: it only scores; default: "
            f"{GENERATED}, as many as it would suggest alone"
        },
    )
    memory_candidates: bool = field(
        default=False,
        metadata={
            "help": "suggest training replies that the response set lacks, too (rare ones, which can be personal)"
        },
    )

    def ranker_options(self) -> RankerOptions | None:
        """What a ranker is built with; None if none was asked for.

        Raises:
            InputError: an option is out of its range, or given without --ranker true.
        """
        for name in self.ranker_parts:
            require_one_of("ranker_parts", name, tuple(PARTS))
        require_one_of("choice", self.choice, CHOICES)
        require_least(self, "memory_prototypes", 1)
        require_least(self, "memory_messages", 1)
        if self.memory_dimension is not None:
            require_least(self, "memory_dimension", 1)
        if not self.ranker_parts:
            raise InputError(f"--ranker_parts: expected at least one of {', '.join(PARTS)}.")
        options = RankerOptions(
            tuple(name for name in PARTS if name in self.ranker_parts),
            self.choice,
            self.memory_dimension,
            self.memory_prototypes,
            self.memory_messages,
        )
        if self.generated is not None:
            if self.generator is None:
                raise InputError("--generated: has no effect without --generator; pass that too, or leave it out.")
            require_least(self, "generated", 0)
            if self.generated > MOST_SUGGESTIONS:
                raise InputError(f"--generated {self.generated}: expected at most {MOST_SUGGESTIONS}; lower it.")
        if not self.ranker and (options != RankerOptions() or self.generator is not None or self.memory_candidates):
            raise InputError(
                "--ranker_parts, --choice, --generator and --memory_...: apply only to a ranker; pass --ranker true, "
                "too."
            )
        return options if self.ranker else None
