"""The trainer: SFT cold start and GRPO over the service's stream, in files that one person reads in an hour.

It reaches the service over HTTP only (`taskmill_client`), runs no candidate code and sees no reference; the SFT cold
start on gold answers of the train split is the one exception. Importing this package loads no torch.
"""
