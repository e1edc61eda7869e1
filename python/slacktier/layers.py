"""Finds a torch model's decoder layers by structure: no list of model classes."""

from slacktier import errors


def _lists(model):
    """Lists of layers alike: every ModuleList of two or more modules of one class, the longest first."""
    found = []
    for name, module in model.named_modules():
        if type(module).__name__ != "ModuleList" or len(module) == 0:
            continue
        classes = {type(child).__name__ for child in module}
        # Layers that differ in kind (attention and linear attention) still share a base or a suffix of their names.
        alike = len(classes) == 1 or all(name.endswith(("Layer", "Block")) for name in classes)
        if alike:
            found.append((name, list(module)))
    return sorted(found, key=lambda entry: -len(entry[1]))


def decoder_layers(model, step=None):
    """The decoder layers in depth order. With `step`, which runs the model once, those lists count only whose modules were each
    called once and in order: a vision tower's are not called when decoding, experts of a layer not in order."""
    candidates = _lists(model)
    if step is not None:
        calls, handles = [], []
        for _, modules in candidates:
            for module in modules:
                handles.append(module.register_forward_pre_hook(lambda module, *_: calls.append(module)))
        try:
            step()
        finally:
            for handle in handles:
                handle.remove()
        candidates = [(name, modules) for name, modules in candidates if [c for c in calls if c in set(modules)] == modules]
    if not candidates:
        raise errors.UsageError(
            f"{type(model).__name__}: no decoder layers found: no ModuleList whose modules are called once each and in order; pass the "
            "layers yourself")
    return candidates[0][1]


def owner(model, layers):
    """The module that has the list of these layers: whose call is a step where an engine calls the whole model's forward() directly,
    which runs no hooks of it."""
    modules = dict(model.named_modules())
    for name, module in modules.items():
        if type(module).__name__ == "ModuleList" and len(module) == len(layers) and all(a is b for a, b in zip(module, layers)):
            return modules[name.rpartition(".")[0]]
    return model
