"""Training recipes on the Tinker protocol: `python -m trainyard.recipes.NAME --config FILE.toml`.

They use only the `tinker` package, so they run against any server that speaks its protocol; `TINKER_BASE_URL` and
`TINKER_API_KEY` choose it.
"""

import importlib.util

if importlib.util.find_spec("tinker") is None:
    raise ImportError("the recipes need more packages than the client: install it with its extra `recipes`")
