"""The options of a language model: those of a generator's texts and search, its prompt, and what it may say."""

from dataclasses import dataclass

from mrs_suggest.common.errors import require_least
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.generation.text_coder import PROMPT, require_prompt
from mrs_suggest.training.generation.options import GenerationTrainingArguments, SearchArguments, require_sound_search
from mrs_suggest.training.generation.training import METRICS
from mrs_suggest.training.options import option
from mrs_suggest.training.reply.options import sound_reply


@dataclass
class CausalArguments(SearchArguments):
    """Data, prompt and search."""

    prompt: str = option(
        PROMPT, "text with {message}, and {language} (English) or {code} (en); with a chat template, the user's turn"
    )
    constrained: bool = option(False, "suggest only replies of the data's response sets, of those up to --max_tokens")
    packing: bool = option(False, "train on batches in one row without padding, each example read by itself")
    samples: int = option(0, "draw this many replies and suggest the most probable ones; 0: beam search")
    temperature: float = option(1.0, "of the samples: divides the logits")


@dataclass
class CausalTrainingArguments(GenerationTrainingArguments):
    output_dir: str | None = option("build/causal", "the folder of the run")
    learning_rate: float = option(1e-3, "peak learning rate; of a trained model, about 2e-5, or 2e-4 with LoRA")


def sound_causal(options: CausalArguments, training: CausalTrainingArguments) -> CausalArguments:
    """The options, once they are known to go together; else an InputError names the option."""
    options = sound_reply(options, training, METRICS)
    require_sound_search(options, SUGGESTIONS)
    require_prompt(options.prompt)
    require_least(options, SUGGESTIONS if options.samples else 0, "samples")
    return options
