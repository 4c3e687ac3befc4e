"""Hooks for schemathesis: what waits for an editor is asked without one.

A session whose runtime is not connected waits until a person connects it, and its stream stays
open for as long. That is as it should be, and nothing that a request made up at random outlives.
"""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict):
        case.body.pop("runtime", None)
