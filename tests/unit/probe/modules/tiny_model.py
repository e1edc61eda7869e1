"""Models of a few layers without any library, as a user's own function makes them for python:MODULE:FUNCTION."""

import time


class Layer:
    """Anything that calls its pre-hooks before it runs, as torch's modules do."""

    def __init__(self, seconds):
        self.seconds, self.hooks = seconds, []

    def register_forward_pre_hook(self, hook):
        self.hooks.append(hook)

    def __call__(self, value):
        for hook in self.hooks:
            hook(self, (value,))
        time.sleep(self.seconds)
        return value + 1


class Model:
    name = "tiny"

    def __init__(self, batch, layers=5):
        self.label = f"batch {batch}"
        self.layers = [Layer(0.0005) for _ in range(layers)]

    def step(self):
        value = 0
        for layer in self.layers:
            value = layer(value)
        return value


def make(batch, context, device):
    return Model(batch)


def without_layers(batch, context, device):
    return Model(batch, layers=0)


def skips_a_layer(batch, context, device):
    model = Model(batch)
    model.step = lambda: [layer(0) for layer in model.layers[1:]]
    return model


def breaks(batch, context, device):
    model = Model(batch)

    def step():
        raise ValueError("the layer broke")

    model.step = step
    return model
