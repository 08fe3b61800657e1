"""Serves a model: `serve.py FILE.gguf`. Prints the base URL, and exits at the end of the standard input, so that no server is left running."""

import os
import sys

import xllamacpp

SLOTS = 8

settings = xllamacpp.CommonParams()
settings.model.path = sys.argv[1]
settings.model_alias = {"tiny"}
settings.hostnames = ["127.0.0.1"]
settings.port = 0
settings.n_parallel = SLOTS
settings.n_ctx = SLOTS * 2048
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
settings.use_jinja = True
settings.warmup = False
settings.offline = True
settings.ui = False
# Answers may be endless, so that a test can end one.
settings.ctx_shift = True
server = xllamacpp.Server(settings)
print(f"{server.listening_address}/v1", flush=True)
sys.stdin.read()
os._exit(0)
