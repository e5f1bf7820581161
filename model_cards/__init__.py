"""Templates of model cards; installed as `mrs_model_cards`. Data, no logic."""
