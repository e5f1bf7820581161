"""The multiple-choice task: XCOPA's setups, their data, validation and evaluation."""
