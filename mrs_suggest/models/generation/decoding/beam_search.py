"""Beam decoding: the n best replies of a model to each message, plain or in diverse groups.

A reply is what follows the prompt up to an end token. As in fairseq, the official code's toolkit, only complete
replies are hypotheses: after `max_tokens` tokens nothing but an end token can follow, at its own probability, and
the padding token is never chosen. So the score of a reply y is log P(y, end | message) / (|y| + 1)^length_penalty.

Diverse beam search (Vijayakumar et al. 2018, section 4) is done as plain searches one after the other: a group needs
the tokens of the groups before it and nothing of those after it.

A model without an encoder (a language model) reads the message and the prompt as one text, padded on the left.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mrs_suggest.common.batches import by_length
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.architectures.prophetnet import may_cache, most_tokens
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis, by_score
from mrs_suggest.models.generation.decoding.search_steps import (
    Allowed,
    Processor,
    Record,
    Rules,
    no_defaults,
    processors_of,
)
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.padding import padded


def decode(
    model: Any, inputs: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], settings: Decoding, n: int = 3,
    bad_words: Sequence[Sequence[int]] = (), allowed: Allowed | None = None,
) -> list[list[Hypothesis]]:  # fmt: skip
    """The n best hypotheses of each input, best first, in the order of the inputs.

    Fewer than n come back only where the settings leave fewer replies. With groups, the best of each group come
    first, so that the top `groups` differ, then the rest; both by score. Two groups can find the same reply.

    The search is `model.generate`, which continues while the best open beam could beat the worst finished reply at the
    present length. Of the checkpoint's generation config, only the end tokens count.

    Args:
        model: an encoder-decoder model, or a language model, of transformers in evaluation mode.
        inputs: token ids of the encoder's text, special tokens included. Texts of similar length share a batch.
        prompts: for each input the decoder's first tokens (start token, language tag), all of one length.
        allowed: the only replies to find; None: any.
        bad_words: token sequences that never occur in a reply: `blocked_token_ids(tokenizer, settings.blocked)`.

    Raises:
        InputError: n exceeds the beams, the model has no end token, or a text or reply is too long for it.
        ValueError: inputs and prompts do not fit each other.
    """
    ends, pad = ends_and_pad(model)
    require_room(model, inputs, prompts, settings, n)
    rules = Rules(settings, n, 0, ends, pad, [list(word) for word in bad_words if word], allowed)
    results: list[list[Hypothesis]] = [[] for _ in inputs]
    with torch.inference_mode(), no_defaults(model):
        for numbers in by_length(inputs, settings.batch_size):
            found = _decode_batch(model, [inputs[i] for i in numbers], [prompts[i] for i in numbers], rules)
            for number, hypotheses in zip(numbers, found, strict=True):
                results[number] = hypotheses
    return results


def ends_and_pad(model: Any) -> tuple[list[int], int]:
    """The ids that end a reply, and the one that fills batches."""
    ends = model.generation_config.eos_token_id
    if ends is None:
        ends = model.config.eos_token_id
    if ends is None:
        raise InputError(
            "the model has no end token: set eos_token_id in its config.json to the id of the one that ends a reply."
        )
    ends = [ends] if isinstance(ends, int) else list(ends)
    pad = model.config.pad_token_id
    return ends, ends[0] if pad is None else pad


def require_room(
    model: Any, inputs: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], settings: Decoding, n: int
) -> None:
    """Raise the errors of `decode` for texts and settings that do not fit the model."""
    if not 1 <= n <= settings.beams:
        raise InputError(
            f"--beams {settings.beams}: gives 1 to {settings.beams} replies per message, and {n} are asked for."
        )
    if len(inputs) != len(prompts) or len({len(prompt) for prompt in prompts}) > 1 or not all(prompts):
        raise ValueError(f"{len(inputs)} inputs need as many prompts, all of one length and none empty.")
    if not all(inputs):
        raise ValueError(f"Input {[len(ids) for ids in inputs].index(0)} has no tokens, not even special ones.")
    positions = most_tokens(model.config)
    if positions is None or not inputs:
        return
    longest = max(map(len, inputs))
    if longest > positions:
        raise InputError(f"a message has {longest} tokens, and the model reads at most {positions}: cut the messages.")
    if len(prompts[0]) + settings.max_tokens > positions:
        raise InputError(
            f"--max_tokens {settings.max_tokens}: the model writes at most {positions - len(prompts[0])}; lower it."
        )


def encoded(
    model: Any, inputs: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], pad: int
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The encoder's states (texts, length, width), their mask (texts, length), and the prompts (texts, tokens).

    Without an encoder there are no states, and what is left of the prompts are the messages.
    """
    if not model.config.is_encoder_decoder:
        rows = [[*ids, *prompt] for ids, prompt in zip(inputs, prompts, strict=True)]
        mask = padded([[1] * len(row) for row in rows], 0, left=True)
        return None, mask.to(model.device), padded(rows, pad, left=True).to(model.device)
    ids, mask = padded(inputs, pad).to(model.device), padded([[1] * len(ids) for ids in inputs], 0).to(model.device)
    hidden = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state  # once for all groups
    return hidden, mask, torch.tensor([list(prompt) for prompt in prompts], device=model.device)


def _decode_batch(
    model: Any, inputs: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], rules: Rules
) -> list[list[Hypothesis]]:
    hidden, mask, start = encoded(model, inputs, prompts, rules.pad)
    rules = rules._replace(prompt=start.shape[1])
    groups: list[list[list[Hypothesis]]] = []
    earlier: list[Tensor] = []
    for _ in range(rules.settings.groups):
        hypotheses, chosen = _decode_group(model, hidden, mask, start, earlier, rules)
        groups.append(hypotheses)
        earlier.append(chosen)
    return [_merge(of_message, rules.n) for of_message in zip(*groups, strict=True)]


def _merge(groups: Sequence[list[Hypothesis]], n: int) -> list[Hypothesis]:
    best = [hypothesis for group in groups for hypothesis in group[:1]]
    rest = [hypothesis for group in groups for hypothesis in group[1:]]
    return [*by_score(best), *by_score(rest)][:n]


def _decode_group(
    model: Any, hidden: Tensor | None, mask: Tensor, start: Tensor, earlier: Sequence[Tensor], rules: Rules
) -> tuple[list[list[Hypothesis]], Tensor]:
    """One search: each message's hypotheses, best first, and the (messages, steps, width) tokens that it chose.

    A token is -1 where it does not count. `generate` continues with a finished message until its batch ends; so that
    the rest of the batch does not matter, its choices count up to the end of its longest hypothesis.
    """
    record = Record(rules.prompt, rules.width, rules.ends)
    penalties = [_hamming(earlier, rules)] if earlier and rules.settings.diversity_penalty else []
    output = generate(model, hidden, mask, start, rules, [*processors_of(rules), *penalties, record])
    hypotheses = read_hypotheses(output.sequences, getattr(output, "beam_indices", None), record, rules, len(start))
    lengths = [max((len(hypothesis.tokens) for hypothesis in found), default=0) for found in hypotheses]
    return hypotheses, record.counted(torch.tensor(lengths, device=start.device), [*rules.ends, rules.pad])


def generate(
    model: Any, hidden: Tensor | None, mask: Tensor, start: Tensor, rules: Rules, processors: Sequence[Processor]
) -> Any:
    """The output of `model.generate` for encoded texts: the sequences, and of beams where they come from."""
    from transformers import GenerationConfig, LogitsProcessorList
    from transformers.modeling_outputs import BaseModelOutput

    width, settings = rules.width, rules.settings
    config = GenerationConfig(
        num_beams=width,
        num_return_sequences=width if settings.groups > 1 else min(rules.n, width),
        max_new_tokens=settings.max_tokens + 1,
        early_stopping=False,
        do_sample=False,
        use_cache=may_cache(model.config),
        return_dict_in_generate=True,
        eos_token_id=rules.ends,
        pad_token_id=rules.pad,
        # One for each message: a prompt that begins with anything else would get a start token in front.
        decoder_start_token_id=start[:, 0].tolist(),
        **({"length_penalty": settings.length_penalty} if width > 1 else {}),
    )
    given: dict[str, Any] = {"input_ids": start}
    if hidden is not None:
        given = {"encoder_outputs": BaseModelOutput(last_hidden_state=hidden), "decoder_input_ids": start}
    return model.generate(
        **given, attention_mask=mask, generation_config=config, logits_processor=LogitsProcessorList(processors)
    )


def read_hypotheses(
    sequences: Tensor, beam_indices: Tensor | None, record: Record, rules: Rules, messages: int
) -> list[list[Hypothesis]]:
    """Hypotheses of each message from generate's output, which is flat and filled up where it found too few."""
    sequences = sequences[:, rules.prompt :]
    rows, steps = sequences.shape
    if steps == 0:
        return [[] for _ in range(messages)]
    each = rows // messages
    ended = torch.isin(sequences, torch.tensor(rules.ends, device=sequences.device))
    lengths = ended.int().argmax(1)
    real = ended.any(1)
    first = torch.arange(rows, device=sequences.device) // each * rules.width
    if beam_indices is None:  # one beam: the row stays the same
        last = first
    else:
        # Only a message's first beam is a search at the start, the others are copies of it at -1e9; and a finished
        # reply can go on where nothing else is left. Neither is a hypothesis.
        sources = beam_indices.long()
        real = real & (sources[:, 0] == first) & ((sources >= 0).sum(1) == lengths + 1)
        last = sources.gather(1, lengths[:, None])[:, 0].clamp(min=0)
    totals = record.ended(lengths, last, sequences.gather(1, lengths[:, None])[:, 0])
    scores = totals / (lengths + 1.0) ** rules.settings.length_penalty
    found: list[list[Hypothesis]] = [[] for _ in range(messages)]
    columns = (sequences.tolist(), lengths.tolist(), scores.tolist(), real.tolist())
    for row, (tokens, length, score, is_real) in enumerate(zip(*columns, strict=True)):
        if is_real and math.isfinite(score):
            found[row // each].append(Hypothesis(tokens[:length], score))
    return [by_score(hypotheses) for hypotheses in found]


def _hamming(earlier: Sequence[Tensor], rules: Rules) -> Processor:
    """Subtracts the penalty from a token's log-probability each time that earlier groups chose it at this step."""

    def penalise(input_ids: Tensor, scores: Tensor) -> Tensor:
        step = input_ids.shape[1] - rules.prompt
        chosen = [tokens[:, step] for tokens in earlier if step < tokens.shape[1]]
        if not chosen:
            return scores
        tokens = torch.cat(chosen, 1).repeat_interleave(rules.width, 0)
        counts = torch.zeros_like(scores).scatter_add_(1, tokens.clamp(min=0), (tokens >= 0).to(scores.dtype))
        return scores - rules.settings.diversity_penalty * counts

    return penalise
