-- Which log the views are folded from: the hash of its first event, which holds the moment and the random ids of its
-- first start. At most one row; none where nothing was folded, or before this table was there.
CREATE TABLE log_identity (
    one         BIGINT PRIMARY KEY CHECK (one = 1),
    first_event TEXT NOT NULL
);
