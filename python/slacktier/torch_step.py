"""One decode step of a Hugging Face model, the same each time: its caches are put back to where they were."""

import torch
import transformers

from slacktier import decode_path, errors
from slacktier.layers import decoder_layers


class StaticState:
    """transformers' static cache, with room for the context and the step's token. A step advances its lengths."""

    def __init__(self, config, context, stock):
        self.cache = transformers.StaticCache(config=config, max_cache_len=context + 1)
        in_place = not stock and decode_path.write_in_place(self.cache)
        self.kind = "static cache" + (", windows written in place" if in_place else "")
        self.context, self.kept = context, []

    def fill(self, model, batch):
        """After a first step, which has made the tensors: from now on `context` tokens are in them (zeros; what they hold costs nothing)."""
        self.kept = [(layer, key) for layer in self.cache.layers for key, value in vars(layer).items()
                     if "cumulative_length" in key and value is not None]
        positions = getattr(self.cache, "position_ids", None)  # Qwen4-exp's, of all tokens
        self.positions = None if positions is None else torch.arange(self.context, device=positions.device).expand(
            *positions.shape[:-1], self.context)

    def rewind(self):
        for layer, key in self.kept:
            value = getattr(layer, key)
            if isinstance(value, torch.Tensor):
                value.fill_(self.context)
            else:
                setattr(layer, key, self.context)
        if self.positions is not None:
            self.cache.position_ids = self.positions


class KeptState:
    """A dynamic cache, for models that have no static one: a step puts new tensors in place of the old, which are kept. A capture of
    it reads the old ones whenever it is replayed, and has to copy what a static cache would write in place."""

    kind = "dynamic cache, rewound"

    def __init__(self, config, context):
        self.cache = transformers.DynamicCache(config=config)
        self.context, self.vocabulary, self.kept = context, config.vocab_size, []

    def fill(self, model, batch):
        """One sequence's context is computed, and all sequences share it."""
        self.cache = transformers.DynamicCache(config=model.config.get_text_config())
        if self.context > 0:
            device = next(model.parameters()).device
            tokens = torch.randint(self.vocabulary, (1, self.context), device=device)
            model(input_ids=tokens, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        for layer in self.cache.layers:
            same = {}  # some keep one tensor under two names
            for key, value in vars(layer).items():
                setattr(layer, key, _of_all(value, batch, same))
        self.kept = [(layer, _copied(vars(layer))) for layer in self.cache.layers]

    def rewind(self):
        for layer, values in self.kept:
            vars(layer).update(_copied(values))


def _of_all(value, batch, same):
    if isinstance(value, dict):
        return {key: _of_all(part, batch, same) for key, part in value.items()}
    if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[0] != 1:
        return value
    if id(value) not in same:
        same[id(value)] = value.expand(batch, *value.shape[1:]).contiguous()
    return same[id(value)]


def _copied(values):
    """Tensors stay what they are; the dictionaries that hold them do not."""
    return {key: dict(value) if isinstance(value, dict) else value for key, value in values.items()}


def _state(config, context, stock, name):
    try:
        return StaticState(config, context, stock)
    except KeyError:
        pass
    try:
        return KeptState(config, context)
    except KeyError as error:
        raise errors.CheckFailed(f"{name}: the step cannot be captured: transformers {transformers.__version__} has no cache for layers of "
                                 f"kind {error}") from error


class HuggingFaceModel:
    """One token for each of `batch` sequences, all different, with `context` tokens before it."""

    def __init__(self, model, batch, context, name, label, seed, stock=False):
        self.model, self.name = model, name
        device = next(model.parameters()).device
        self.capture = device.type != "cpu"
        config = model.config.get_text_config()
        random = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(config.vocab_size, (batch, 1), generator=random).to(device)
        self.position = torch.full((batch, 1), context, dtype=torch.long, device=device)
        self.state = _state(config, context, stock, name)
        self.label = f"{label}, {self.state.kind}"
        with torch.inference_mode():
            self.layers = decoder_layers(model, self.step)
            self.state.fill(model, batch)
        if self.capture:
            torch.cuda.empty_cache()  # of the context's computation: captures have memory of their own
        self.rewind()

    def step(self):
        with torch.inference_mode():
            return self.model(input_ids=self.tokens, position_ids=self.position, past_key_values=self.state.cache, use_cache=True).logits

    def rewind(self):
        """A step advances the cache; without this it runs off its end after a few."""
        with torch.inference_mode():
            self.state.rewind()
