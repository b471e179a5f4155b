"""Training recipes on the Tinker protocol: `python -m trainyard.recipes.NAME --config FILE.toml`.

They use the `tinker` package alone, so they run against any server that speaks its protocol; `TINKER_BASE_URL` and
`TINKER_API_KEY` choose it.
"""
