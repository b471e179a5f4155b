"""The surface of the SDK: every public method, command, value and call, with what drives each against a real server."""
