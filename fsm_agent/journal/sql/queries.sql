-- What a store asks of its database, by name. Both databases understand all of it.

-- Writing to a run

-- name: advance
UPDATE run_state SET phase = ?, seq = ?, checksum = ?, plan_version = ?, plan = ?, changed = ?
WHERE number = ? AND fence = ? AND seq = ? AND driver IS NOT NULL

-- name: finish
UPDATE run_state SET phase = ?, finished = 1, seq = ?, checksum = ?, plan_version = ?, plan = ?, changed = ?
WHERE number = ? AND fence = ? AND seq = ? AND driver IS NOT NULL

-- name: add_event
INSERT INTO journal (key, at, type, body) VALUES (?, ?, ?, ?)

-- name: set_task
INSERT INTO task_state (key, status, reason, visits, attempts, retried, asked, started, ended)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    status = excluded.status,
    reason = excluded.reason,
    visits = excluded.visits,
    attempts = excluded.attempts,
    retried = excluded.retried,
    asked = coalesce(excluded.asked, task_state.asked),
    started = coalesce(excluded.started, task_state.started),
    ended = coalesce(excluded.ended, task_state.ended)

-- name: forget_task
DELETE FROM task_state WHERE key = ?

-- name: add_plan
INSERT INTO plan (digest, body) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING

-- name: use_plan
INSERT INTO plan_use (digest, run) VALUES (?, ?) ON CONFLICT (digest, run) DO NOTHING

-- name: take_request
DELETE FROM request WHERE number = ? AND run = ?

-- name: add_run
INSERT INTO run_state
    (id, phase, finished, seq, checksum, plan_version, plan, fence, driver, until, created, changed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
RETURNING number

-- name: keep_snapshot
INSERT INTO snapshot (run, seq, checksum, body)
SELECT number, ?, ?, ? FROM run_state WHERE number = ? AND fence = ? AND driver IS NOT NULL
ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, checksum = excluded.checksum, body = excluded.body

-- Leases

-- name: take_run
UPDATE run_state SET fence = fence + 1, driver = ?, until = ? WHERE number = ? AND fence = ? RETURNING fence

-- name: renew
UPDATE run_state SET until = ? WHERE number = ? AND fence = ? AND driver IS NOT NULL

-- name: held
SELECT 1 FROM run_state WHERE number = ? AND fence = ? AND driver IS NOT NULL

-- name: release
UPDATE run_state SET driver = NULL, until = 0 WHERE number = ? AND fence = ?

-- Requests

-- name: ask
INSERT INTO request (run, at, kind, once, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run, once) DO NOTHING
RETURNING number

-- name: asked
SELECT number, at, kind, body FROM request WHERE run = ? AND once = ?

-- name: requests
SELECT request.number, run_state.id, request.at, request.kind, request.body
FROM request JOIN run_state ON run_state.number = request.run
ORDER BY request.number

-- Reading

-- name: head
SELECT id, number, phase, seq, checksum, plan_version, plan, driver, until, fence, created, changed
FROM run_state WHERE id = ?

-- name: head_of
SELECT id, number, phase, seq, checksum, plan_version, plan, driver, until, fence, created, changed
FROM run_state WHERE number = ?

-- name: heads
SELECT id, number, phase, seq, checksum, plan_version, plan, driver, until, fence, created, changed
FROM run_state ORDER BY created DESC, number DESC

-- name: unfinished
SELECT id, number, phase, seq, checksum, plan_version, plan, driver, until, fence, created, changed
FROM run_state WHERE finished = 0 ORDER BY created DESC, number DESC

-- name: number
SELECT number FROM run_state WHERE id = ?

-- name: events
SELECT key, at, type, body FROM journal WHERE key > ? AND key <= ? ORDER BY key

-- name: plan
SELECT digest, body FROM plan WHERE digest = ?

-- name: snapshot
SELECT seq, checksum, body FROM snapshot WHERE run = ?

-- Removing

-- name: remove_run
DELETE FROM run_state WHERE number = ? AND fence = ?

-- name: remove_events
DELETE FROM journal WHERE key > ? AND key < ?

-- name: remove_tasks
DELETE FROM task_state WHERE key >= ? AND key < ?

-- name: remove_requests
DELETE FROM request WHERE run = ?

-- name: remove_snapshot
DELETE FROM snapshot WHERE run = ?

-- name: remove_plans
DELETE FROM plan WHERE digest IN (SELECT digest FROM plan_use WHERE run = ?)
AND NOT EXISTS (SELECT 1 FROM plan_use AS other WHERE other.digest = plan.digest AND other.run <> ?)

-- name: remove_uses
DELETE FROM plan_use WHERE run = ?

-- The tables

-- name: describe
INSERT INTO about (application, version) VALUES (?, ?)

-- name: redescribe
UPDATE about SET version = ?

-- name: about
SELECT application, version FROM about
