"""The objectives by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mrs_suggest.training.pretraining.mlm import MaskedLanguageModelling
from mrs_suggest.training.pretraining.objective import Objective
from mrs_suggest.training.pretraining.tlm import TranslationLanguageModelling
from mrs_suggest.training.pretraining.xdae import Denoising
from mrs_suggest.training.pretraining.xfnp import FutureNgrams

OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        "mlm": MaskedLanguageModelling(),
        "tlm": TranslationLanguageModelling(),
        "xdae": Denoising(),
        "xfnp": FutureNgrams(),
    }
)
