//! Client of the Trainyard API. It will be generated from `openapi/openapi.json`; nothing is published yet.
