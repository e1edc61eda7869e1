"""DeepSeek-V4: everything in it can be captured. Its first layers choose experts by a table from the checkpoint, which transformers
fills with zeros where there is none: every token would go to one expert, six times."""

import torch


def prepare(model, random_weights):
    changed = []
    if random_weights:
        for module in model.modules():
            table = getattr(module, "tid2eid", None)
            if table is None:
                continue
            # So many experts a token, all different.
            first = torch.randint(module.num_experts, (table.shape[0], 1), device=table.device)
            steps = torch.arange(table.shape[1], device=table.device)
            table.copy_((first + steps * max(1, module.num_experts // table.shape[1])) % module.num_experts)
            changed.append("experts by token drawn at random")
    return sorted(set(changed))
