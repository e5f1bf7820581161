"""Any OpenAI-compatible server as a model: `openai:URL#MODEL`, or `openai:FILE.yaml` with more settings."""
