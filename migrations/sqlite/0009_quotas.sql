-- What a tenant has queued is summed up when it submits a sample.
CREATE INDEX requests_open_tokens ON requests (tenant, tokens) WHERE finished_at IS NULL;
