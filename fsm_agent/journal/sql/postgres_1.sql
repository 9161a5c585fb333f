-- The tables of a store in PostgreSQL, version 1, as those of SQLite: see there. Texts must come back exactly as they
-- were written, so that they are `json` and not `jsonb`.

CREATE TABLE about (application text NOT NULL, version integer NOT NULL);

CREATE TABLE plan (digest text NOT NULL PRIMARY KEY, body json NOT NULL);

CREATE TABLE run_state (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    phase text NOT NULL,
    finished smallint NOT NULL,
    seq bigint NOT NULL,
    checksum bigint NOT NULL,
    plan_version integer NOT NULL,
    plan text,
    fence bigint NOT NULL,
    driver text,
    until double precision NOT NULL,
    created double precision NOT NULL,
    changed double precision NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX unfinished_run ON run_state (number) WHERE finished = 0;

-- Which plans a run has had, so that the last run takes its plans along. Of two that remove a plan and begin to use it at
-- once, the later one fails at its end, and tries again.
CREATE TABLE plan_use (
    digest text NOT NULL REFERENCES plan DEFERRABLE INITIALLY DEFERRED,
    run bigint NOT NULL,
    PRIMARY KEY (digest, run)
);

CREATE INDEX plan_of_run ON plan_use (run);

-- The key is the run's number * 2^32 + seq: no second index is needed, and the events of a run lie together.
-- A row with the body "round" is two events, of which the second has the next seq: see the view.
CREATE TABLE journal (key bigint PRIMARY KEY, at double precision NOT NULL, type text NOT NULL, body json NOT NULL);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are never changed, and never deleted one by one';
END $$;

CREATE TRIGGER journal_is_not_changed BEFORE UPDATE ON journal FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER journal_is_not_emptied BEFORE TRUNCATE ON journal FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A run goes as a whole: its state first.
CREATE FUNCTION refuse_cut() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM run_state WHERE number = old.key >> 32) THEN
        RAISE EXCEPTION 'events are never changed, and never deleted one by one';
    END IF;
    RETURN old;
END $$;

CREATE TRIGGER journal_is_not_cut BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION refuse_cut();

-- The key is the run's number * 2^32 + the task's place in the plan; asked, started and ended are the seq of events.
CREATE TABLE task_state (
    key bigint PRIMARY KEY,
    status text NOT NULL,
    reason text,
    visits bigint NOT NULL,
    attempts bigint NOT NULL,
    retried bigint NOT NULL,
    asked bigint,
    started bigint,
    ended bigint
);

CREATE TABLE request (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL,
    at double precision NOT NULL,
    kind text NOT NULL,
    once text,
    body json NOT NULL
);

CREATE UNIQUE INDEX request_of_run ON request (run, once);

CREATE TABLE snapshot (run bigint PRIMARY KEY, seq bigint NOT NULL, checksum bigint NOT NULL, body text NOT NULL);

-- This server reads no JSON with U+0000 in it. Views show U+FFFD in its place; the tables keep what was written.
CREATE FUNCTION shown(body json) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN position('\u0000' IN body::text) = 0 THEN body
        ELSE regexp_replace(body::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::json
    END
$$;

CREATE VIEW events AS
SELECT
    run_state.id AS run_id,
    (journal.key & 4294967295) + part.place AS seq,
    journal.at,
    journal.type,
    shown(journal.body) ->> 'task' AS task,
    (shown(journal.body) ->> 'visit')::bigint AS visit,
    CASE WHEN journal.body::text = '"round"' THEN part.body ELSE journal.body END AS body
FROM run_state
JOIN journal ON journal.key > run_state.number << 32 AND journal.key < (run_state.number + 1) << 32
JOIN (VALUES (0, json '"settled"'), (1, json '"evaluated"')) AS part (place, body)
    ON part.place = 0 OR journal.body::text = '"round"';

CREATE VIEW runs AS
SELECT
    run_state.id,
    shown(plan.body) ->> 'name' AS plan,
    run_state.plan_version AS version,
    run_state.plan AS digest,
    run_state.phase,
    shown(last.body) ->> 'outcome' AS outcome,
    coalesce(shown(first.body) ->> 'goal', shown(plan.body) ->> 'goal') AS goal,
    coalesce(shown(first.body) -> 'labels', '{}'::json) AS labels,
    first.at AS started,
    last.at AS finished,
    run_state.changed,
    run_state.driver,
    shown(last.body) -> 'reason' AS reason
FROM run_state
LEFT JOIN plan ON plan.digest = run_state.plan
LEFT JOIN journal AS first ON first.key = run_state.number << 32 | 1
LEFT JOIN journal AS last ON run_state.finished = 1 AND last.key = (
    SELECT max(entry.key) FROM journal AS entry
    WHERE entry.key > run_state.number << 32 AND entry.key < (run_state.number + 1) << 32
        AND entry.type = 'run_finished'
);

CREATE VIEW tasks AS
SELECT
    run_state.id AS run_id,
    item.value ->> 'id' AS task,
    item.value ->> 'name' AS name,
    coalesce(state.status, 'PENDING') AS status,
    state.reason,
    coalesce(state.visits, 0) AS visits,
    coalesce(state.attempts, 0) AS attempts,
    coalesce(state.retried, 0) AS retries,
    start.at AS started,
    finish.at AS finished,
    -- An event without parameters says that the one before has the very same.
    coalesce(
        CASE WHEN state.started IS NULL OR state.asked > state.started THEN shown(ask.body) -> 'parameters' END,
        shown(start.body) -> 'parameters',
        CASE WHEN shown(ask.body) ->> 'visit' = shown(start.body) ->> 'visit' THEN shown(ask.body) -> 'parameters' END,
        item.value -> 'parameters',
        '{}'::json
    ) AS input,
    coalesce(shown(finish.body) -> 'data', shown(finish.body) -> 'result') AS output,
    shown(finish.body) -> 'error' AS error
FROM run_state
JOIN plan ON plan.digest = run_state.plan
CROSS JOIN LATERAL json_array_elements(shown(plan.body) -> 'tasks') WITH ORDINALITY AS item (value, place)
LEFT JOIN task_state AS state ON state.key = run_state.number << 32 | (item.place - 1)
LEFT JOIN journal AS ask ON ask.key = run_state.number << 32 | state.asked
LEFT JOIN journal AS start ON start.key = run_state.number << 32 | state.started
-- What an earlier visit came to is not what the present one has.
LEFT JOIN journal AS finish
    ON finish.key = run_state.number << 32 | state.ended AND state.ended >= coalesce(state.started, 0);
