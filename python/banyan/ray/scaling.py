"""How many replicas a deployment should have, by the prompt tokens that wait for a first token."""

from __future__ import annotations

import math
from typing import Any

QUEUED_TOKENS = "queued_tokens"  # what replicas report


class QueuedTokensPolicy:
    """An autoscaling policy of Ray Serve; delays and bounds are those of its configuration.

    As many replicas as leave each `target_queued_tokens`, and as many as the running requests
    need, `requests_per_replica` each. Requests alone would count a prompt of 30,000 tokens as one.
    """

    def __init__(self, target_queued_tokens: float, requests_per_replica: int):
        self._target, self._requests = target_queued_tokens, requests_per_replica

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        reports = (context.aggregated_metrics or {}).get(QUEUED_TOKENS, {})
        by_tokens = math.ceil(sum(reports.values()) / self._target)
        by_requests = math.ceil(context.total_num_requests / self._requests)
        return max(by_tokens, by_requests), {}
