"""SlackTier's Python side: what its programs call in their embedded interpreter, and what runs in a user's own.

slacktier.attach(model) hooks a torch model of yours for `slacktier-probe windows --attach`; `python -m slacktier.probe` is the probe."""


def attach(model, *arguments, **keywords):
    """See slacktier.attachment.attach."""
    from slacktier.attachment import attach as attach_model

    return attach_model(model, *arguments, **keywords)
