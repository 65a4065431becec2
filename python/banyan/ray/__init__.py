"""Banyan under Ray: `banyan.ray.serving` answers clients, `banyan.ray.batch` files of prompts.

Both need `pip install "ray[serve,data]"`, which the package itself does not.
"""
