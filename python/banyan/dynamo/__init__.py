"""A Banyan worker as an engine of Dynamo: `python -m banyan.dynamo`. Needs `ai-dynamo` of PyPI."""
