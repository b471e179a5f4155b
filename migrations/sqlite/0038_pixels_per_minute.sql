-- Limit: pixels of images that the organisation may send to an API server per minute.
ALTER TABLE organisations ADD COLUMN pixels_per_minute INTEGER CHECK (pixels_per_minute >= 1);
