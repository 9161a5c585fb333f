-- The tables of a store in SQLite, version 1. The views `runs`, `tasks` and `events` are for people; times in them are
-- seconds since 1970. A value is kept once: in the plan, or in the body of the event that brought it.

CREATE TABLE about (application text NOT NULL, version integer NOT NULL);

CREATE TABLE plan (digest text NOT NULL PRIMARY KEY, body text NOT NULL) WITHOUT ROWID;

CREATE TABLE run_state (
    number integer PRIMARY KEY AUTOINCREMENT,
    id text NOT NULL UNIQUE,
    phase text NOT NULL,
    finished integer NOT NULL,
    seq integer NOT NULL,
    checksum integer NOT NULL,
    plan_version integer NOT NULL,
    plan text,
    fence integer NOT NULL,
    driver text,
    until real NOT NULL,
    created real NOT NULL,
    changed real NOT NULL
);

CREATE INDEX unfinished_run ON run_state (number) WHERE finished = 0;

-- Which plans a run has had, so that the last run takes its plans along.
CREATE TABLE plan_use (digest text NOT NULL, run integer NOT NULL, PRIMARY KEY (digest, run)) WITHOUT ROWID;

CREATE INDEX plan_of_run ON plan_use (run);

-- The key is the run's number * 2^32 + seq: no second index is needed, and the events of a run lie together.
-- A row with the body "round" is two events, of which the second has the next seq: see the view.
CREATE TABLE journal (key integer PRIMARY KEY, at real NOT NULL, type text NOT NULL, body text NOT NULL);

CREATE TRIGGER journal_is_not_changed BEFORE UPDATE ON journal
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;

-- A run goes as a whole: its state first.
CREATE TRIGGER journal_is_not_cut BEFORE DELETE ON journal
WHEN EXISTS (SELECT 1 FROM run_state WHERE number = old.key >> 32)
BEGIN
    SELECT RAISE(ABORT, 'single events are never deleted');
END;

-- The key is the run's number * 2^32 + the task's place in the plan; asked, started and ended are the seq of events.
CREATE TABLE task_state (
    key integer PRIMARY KEY,
    status text NOT NULL,
    reason text,
    visits integer NOT NULL,
    attempts integer NOT NULL,
    retried integer NOT NULL,
    asked integer,
    started integer,
    ended integer
);

CREATE TABLE request (
    number integer PRIMARY KEY AUTOINCREMENT,
    run integer NOT NULL,
    at real NOT NULL,
    kind text NOT NULL,
    once text,
    body text NOT NULL
);

CREATE UNIQUE INDEX request_of_run ON request (run, once);

CREATE TABLE snapshot (run integer PRIMARY KEY, seq integer NOT NULL, checksum integer NOT NULL, body text NOT NULL);

CREATE VIEW events AS
SELECT
    run_state.id AS run_id,
    (journal.key & 4294967295) + part.place AS seq,
    journal.at,
    journal.type,
    journal.body ->> 'task' AS task,
    journal.body ->> 'visit' AS visit,
    CASE WHEN journal.body = '"round"' THEN part.body ELSE journal.body END AS body
FROM run_state
JOIN journal ON journal.key > run_state.number << 32 AND journal.key < (run_state.number + 1) << 32
JOIN (SELECT 0 AS place, '"settled"' AS body UNION ALL SELECT 1, '"evaluated"') AS part
    ON part.place = 0 OR journal.body = '"round"';

CREATE VIEW runs AS
SELECT
    run_state.id,
    plan.body ->> 'name' AS plan,
    run_state.plan_version AS version,
    run_state.plan AS digest,
    run_state.phase,
    last.body ->> 'outcome' AS outcome,
    coalesce(first.body ->> 'goal', plan.body ->> 'goal') AS goal,
    coalesce(first.body -> 'labels', '{}') AS labels,
    first.at AS started,
    last.at AS finished,
    run_state.changed,
    run_state.driver,
    last.body -> 'reason' AS reason
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
        CASE WHEN state.started IS NULL OR state.asked > state.started THEN ask.body -> 'parameters' END,
        start.body -> 'parameters',
        CASE WHEN ask.body ->> 'visit' = start.body ->> 'visit' THEN ask.body -> 'parameters' END,
        item.value -> 'parameters',
        '{}'
    ) AS input,
    coalesce(finish.body -> 'data', finish.body -> 'result') AS output,
    finish.body -> 'error' AS error
FROM run_state
JOIN plan ON plan.digest = run_state.plan
JOIN json_each(plan.body, '$.tasks') AS item
LEFT JOIN task_state AS state ON state.key = run_state.number << 32 | item.key
LEFT JOIN journal AS ask ON ask.key = run_state.number << 32 | state.asked
LEFT JOIN journal AS start ON start.key = run_state.number << 32 | state.started
-- What an earlier visit came to is not what the present one has.
LEFT JOIN journal AS finish
    ON finish.key = run_state.number << 32 | state.ended AND state.ended >= coalesce(state.started, 0);
