"""Parts of transformers' models that a graph cannot capture as they stand, replaced by ones of fixed shape that compute the same.

A file a model; each gives `prepare(model, random_weights)`, which changes what it knows in the model and returns a word for each
change, for the head of a table. A model is added by its file and its entry here."""

import importlib

PREPARED = {"deepseek_v4": "deepseek_v4", "qwen4_exp": "qwen4_exp", "qwen4_exp_text": "qwen4_exp"}


def prepare(model, random_weights):
    """Makes a step of this model capturable, where it is one of those known. Returns what was changed."""
    name = PREPARED.get(model.config.get_text_config().model_type)
    if name is None:
        return []
    return importlib.import_module(f"{__name__}.{name}").prepare(model, random_weights)
