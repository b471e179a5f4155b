-- Samples whose sequences training requests may name: their results are kept until a day after the last use.
ALTER TABLE requests ADD COLUMN recorded_at BIGINT; -- ms since the epoch: when a sample that records its sequences was accepted, or last used
CREATE INDEX requests_recorded ON requests (recorded_at) WHERE recorded_at IS NOT NULL AND NOT dropped;
