"""Hugging Face models for the probe: a decode step on a static cache, captured by torch where there is a GPU."""

import json
import os

import torch  # first: of several that are missing it is the one to name
import transformers
import huggingface_hub.errors

from slacktier import capturable, decode_path, errors
from slacktier.torch_step import HuggingFaceModel

# What configs that check their values raise; older ones check none.
StrictDataclassError = getattr(huggingface_hub.errors, "StrictDataclassError", ())
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def _read(name):
    """A local config.json as transformers' config."""
    if not os.path.isfile(name):
        raise errors.UsageError(f"--model {name}: there is no such file")
    with open(name, encoding="utf-8") as file:
        try:
            values = json.load(file)
        except json.JSONDecodeError as error:
            raise errors.UsageError(f"--model {name}:{error.lineno}: this is no JSON: {error.msg}") from error
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise errors.UsageError(f"--model {name}: a config is an object with a model_type, such as \"llama\"")
    return transformers.AutoConfig.for_model(values.pop("model_type"), **values)


def _config(name, overrides, layers_limit):
    try:
        config = _read(name) if name.endswith(".json") else transformers.AutoConfig.from_pretrained(name)
    except StrictDataclassError as error:
        raise errors.UsageError(f"--model {name}: {_of_strict(error)}") from error
    except (ValueError, KeyError) as error:
        raise errors.EnvironmentLacks(f"--model {name}: transformers {transformers.__version__} does not know this model "
                                      f"({errors.said(error)[:120]}): pip install --upgrade transformers") from error
    except OSError as error:
        raise errors.UsageError(f"--model {name}: no folder with a config.json, and nothing that Hugging Face has: "
                                f"{errors.said(error)}") from error
    for override in overrides:
        _override(config, override)
    text = config.get_text_config()
    whole = text.num_hidden_layers
    if layers_limit:
        text.num_hidden_layers = min(whole, layers_limit)
        # Some configs say the kind of each layer.
        for key, value in list(vars(text).items()):
            if isinstance(value, list) and len(value) == whole:
                setattr(text, key, value[:layers_limit])
        # The last layers' own: those that take their keys from earlier ones.
        if shared := getattr(text, "num_kv_shared_layers", 0):
            text.num_kv_shared_layers = max(0, shared - (whole - text.num_hidden_layers))
    return config, whole


def _override(config, override):
    key, equals, text = override.partition("=")
    *path, last = key.split(".")
    target = config
    for part in path:
        target = getattr(target, part, None)
    if not path and not hasattr(target, last):  # what is not the config's own may be its text part's
        target = config.get_text_config()
    if not equals or target is None or not hasattr(target, last):
        raise errors.UsageError(f"--config {override}: the config has no '{key}'; write KEY=VALUE")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    try:
        setattr(target, last, value)
    except StrictDataclassError as error:
        raise errors.UsageError(f"--config {override}: {_of_strict(error)}") from error


def _of_strict(error):
    """The reason is in its last line."""
    return str(error).splitlines()[-1].strip()


def load(name, device, dtype, random_weights, stock, layers_limit, overrides, batch, context, seed):
    if dtype not in DTYPES:
        raise errors.UsageError(f"--dtype {dtype}: use one of {', '.join(DTYPES)}")
    if device != "cpu" and not torch.cuda.is_available():
        raise errors.EnvironmentLacks(f"--device {device}: this torch ({torch.__version__}) sees no GPU: is it a CPU build, or is the driver "
                                      "too old for it?")
    config, whole = _config(name, overrides, layers_limit)
    torch.manual_seed(seed)
    target = device.replace("hip", "cuda")  # torch's name for both
    try:
        if random_weights:
            with torch.device(target):
                model = transformers.AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
        else:
            model = transformers.AutoModelForCausalLM.from_pretrained(os.path.dirname(name) if name.endswith(".json") else name,
                                                                      config=config, dtype=DTYPES[dtype]).to(target)
    except ValueError as error:
        text = errors.said(error)
        if "Unrecognized configuration class" in text:
            raise errors.EnvironmentLacks(f"--model {name}: transformers {transformers.__version__} has no causal model of this class: "
                                          f"{type(config).__name__}") from error
        raise errors.UsageError(f"--model {name}: no model can be made of this config: {text}") from error
    except OSError as error:
        raise errors.UsageError(f"--model {name}: no weights: {errors.said(error)}; --random-weights needs none") from error
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise errors.EnvironmentLacks(f"--model {name}: {errors.said(error)}: take a part with --layers-limit, "
                                      "or a smaller --dtype") from error
    changes = capturable.prepare(model, random_weights)
    if not stock:
        changes += decode_path.prepare(model)
    layers = config.get_text_config().num_hidden_layers
    label = f"{type(model).__name__}, {'random weights' if random_weights else 'its weights'}, {dtype}, {layers} of {whole} layers"
    label += f", torch {torch.__version__}, transformers {transformers.__version__}" + "".join(f", {change}" for change in changes)
    try:
        return HuggingFaceModel(model.eval(), batch, context, os.path.basename(name.rstrip("/")) or name, label, seed, stock)
    except torch.OutOfMemoryError as error:
        raise errors.EnvironmentLacks(f"--batch {batch}: {errors.said(error)}: take a smaller batch or context") from error
