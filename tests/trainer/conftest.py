"""One thread for torch: several would spin against the other test processes."""

import torch

torch.set_num_threads(1)
