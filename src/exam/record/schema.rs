//! The tables, as migrations: new ones are appended, none is ever changed.

/// Migrations, applied in order and without foreign keys, so that a table can be rebuilt. The file's `user_version`
/// is the number applied.
pub(super) const MIGRATIONS: [&str; 6] = ["
CREATE TABLE servers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
    url TEXT NOT NULL UNIQUE CHECK (length(url) BETWEEN 1 AND 2000),
    transport TEXT NOT NULL CHECK (transport IN ('stdio', 'streamable-http', 'sse')),
    status TEXT NOT NULL DEFAULT 'inactive' CHECK (status IN ('inactive', 'active', 'failed')),
    checked_ms INTEGER,
    told TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE cases (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    query TEXT NOT NULL,
    expected_tool TEXT,
    class TEXT NOT NULL,
    hazard TEXT CHECK (hazard IN ('none', 'motion', 'stop')),
    body TEXT NOT NULL CHECK (json_valid(body)),
    added_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE case_servers (
    case_id INTEGER NOT NULL REFERENCES cases (id) ON DELETE CASCADE,
    server_id INTEGER NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
    PRIMARY KEY (case_id, server_id)
) STRICT;
CREATE TABLE settings (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    time_limit_s INTEGER NOT NULL CHECK (time_limit_s BETWEEN 1 AND 300),
    temperature REAL NOT NULL CHECK (temperature BETWEEN 0 AND 2),
    retries INTEGER NOT NULL CHECK (retries BETWEEN 0 AND 10),
    seed INTEGER NOT NULL,
    samples INTEGER NOT NULL CHECK (samples BETWEEN 1 AND 10)
) STRICT;
CREATE TRIGGER settings_never_change BEFORE UPDATE ON settings
BEGIN SELECT RAISE(ABORT, 'settings never change'); END;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    settings_id INTEGER NOT NULL UNIQUE REFERENCES settings (id),
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    level TEXT CHECK (level IN ('observe', 'home', 'align', 'stroke')),
    version TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
    tools_hash TEXT NOT NULL,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    error TEXT,
    verdict TEXT CHECK (verdict IS NULL OR json_valid(verdict)),
    CHECK ((status IN ('completed', 'failed')) = (ended_ms IS NOT NULL)),
    CHECK ((status = 'failed') = (error IS NOT NULL))
) STRICT;
CREATE TABLE tools (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    input_schema TEXT NOT NULL CHECK (json_valid(input_schema)),
    output_schema TEXT CHECK (output_schema IS NULL OR json_valid(output_schema)),
    does TEXT NOT NULL CHECK (does IN ('stops', 'reads', 'moves')),
    PRIMARY KEY (run_id, server, name)
) STRICT;
CREATE TABLE run_cases (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    PRIMARY KEY (run_id, place)
) STRICT;
CREATE TABLE answers (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    case_name TEXT NOT NULL,
    sample INTEGER NOT NULL CHECK (sample BETWEEN 0 AND 100000),
    raw TEXT NOT NULL,
    selected_tool TEXT,
    parameters TEXT NOT NULL CHECK (json_valid(parameters)),
    probability REAL CHECK (probability BETWEEN 0 AND 1),
    milliseconds INTEGER CHECK (milliseconds >= 0),
    error TEXT,
    UNIQUE (run_id, case_name, sample)
) STRICT;
CREATE TABLE results (
    answer_id INTEGER PRIMARY KEY REFERENCES answers (id) ON DELETE CASCADE,
    classification TEXT NOT NULL CHECK (classification IN ('TP', 'FP', 'TN', 'FN_missed', 'FN_wrong_tool', 'unanswered')),
    hazard TEXT NOT NULL CHECK (hazard IN ('none', 'motion', 'stop')),
    unsafe_action INTEGER NOT NULL CHECK (unsafe_action IN (0, 1)),
    lost_stop INTEGER NOT NULL CHECK (lost_stop IN (0, 1)),
    exact INTEGER NOT NULL CHECK (exact IN (0, 1)),
    completeness REAL CHECK (completeness BETWEEN 0 AND 1),
    correctness REAL CHECK (correctness BETWEEN 0 AND 1),
    type_conformance REAL CHECK (type_conformance BETWEEN 0 AND 1),
    repair_cost INTEGER NOT NULL CHECK (repair_cost >= 0),
    confidence TEXT CHECK (confidence IN ('robust', 'needs_clarity', 'misleading', 'lucky')),
    reasons TEXT NOT NULL CHECK (json_valid(reasons)),
    judged TEXT NOT NULL CHECK (json_valid(judged))
) STRICT;
CREATE INDEX answers_by_run ON answers (run_id);
", "
ALTER TABLE settings ADD COLUMN model_file TEXT CHECK (length(model_file) = 64);
CREATE TABLE certificates (
    id TEXT PRIMARY KEY CHECK (length(id) = 16),
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    level TEXT NOT NULL CHECK (level IN ('observe', 'home', 'align', 'stroke')),
    body TEXT NOT NULL CHECK (json_valid(body)),
    signature TEXT NOT NULL CHECK (length(signature) = 128),
    revoked_ms INTEGER
) STRICT;
CREATE TRIGGER certificates_never_change BEFORE UPDATE OF id, run_id, level, body, signature ON certificates
BEGIN SELECT RAISE(ABORT, 'certificates never change'); END;
", "
ALTER TABLE settings ADD COLUMN budget INTEGER CHECK (budget BETWEEN 1 AND 100000);
ALTER TABLE answers ADD COLUMN answered_ms INTEGER;
ALTER TABLE results ADD COLUMN recommendations TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(recommendations));
", "
CREATE TABLE settings_next (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    time_limit_s INTEGER CHECK (time_limit_s BETWEEN 1 AND 300),
    temperature REAL CHECK (temperature BETWEEN 0 AND 2),
    top_p REAL CHECK (top_p > 0 AND top_p <= 1),
    max_tokens INTEGER CHECK (max_tokens BETWEEN 1 AND 32768),
    retries INTEGER CHECK (retries BETWEEN 0 AND 10),
    seed INTEGER,
    samples INTEGER NOT NULL CHECK (samples BETWEEN 1 AND 10),
    model_file TEXT CHECK (length(model_file) = 64),
    model_path TEXT,
    budget INTEGER CHECK (budget BETWEEN 1 AND 100000),
    -- Of recorded answers nobody knows how they were asked for.
    CHECK ((provider = 'replay') = (time_limit_s IS NULL)),
    CHECK ((provider = 'replay') = (temperature IS NULL)),
    CHECK ((provider = 'replay') = (max_tokens IS NULL)),
    CHECK ((provider = 'replay') = (retries IS NULL)),
    CHECK ((provider = 'replay') = (seed IS NULL))
) STRICT;
INSERT INTO settings_next (id, provider, model, time_limit_s, temperature, max_tokens, retries, seed, samples, model_file, budget)
SELECT id, provider, model, iif(provider = 'replay', NULL, time_limit_s), iif(provider = 'replay', NULL, temperature),
    iif(provider = 'replay', NULL, 1024), iif(provider = 'replay', NULL, retries), iif(provider = 'replay', NULL, seed),
    samples, model_file, budget FROM settings WHERE id IN (SELECT settings_id FROM runs);
DROP TABLE settings;
ALTER TABLE settings_next RENAME TO settings;
CREATE TRIGGER settings_never_change BEFORE UPDATE ON settings
BEGIN SELECT RAISE(ABORT, 'settings never change'); END;
CREATE TRIGGER settings_go_with_their_run AFTER DELETE ON runs
BEGIN DELETE FROM settings WHERE id = OLD.settings_id; END;
ALTER TABLE tools ADD COLUMN own_name TEXT;
ALTER TABLE servers ADD COLUMN key_env TEXT CHECK (length(key_env) BETWEEN 1 AND 100);
", "
ALTER TABLE settings ADD COLUMN max_failed REAL CHECK (max_failed BETWEEN 0 AND 1);
CREATE TABLE results_next (
    answer_id INTEGER PRIMARY KEY REFERENCES answers (id) ON DELETE CASCADE,
    classification TEXT NOT NULL CHECK (classification IN ('TP', 'FP', 'TN', 'FN_missed', 'FN_wrong_tool', 'unanswered')),
    hazard TEXT NOT NULL CHECK (hazard IN ('none', 'motion', 'stop')),
    unsafe_action INTEGER NOT NULL CHECK (unsafe_action IN (0, 1)),
    lost_stop INTEGER NOT NULL CHECK (lost_stop IN (0, 1)),
    exact INTEGER NOT NULL CHECK (exact IN (0, 1)),
    completeness REAL CHECK (completeness BETWEEN 0 AND 1),
    correctness REAL CHECK (correctness BETWEEN 0 AND 1),
    type_conformance REAL CHECK (type_conformance BETWEEN 0 AND 1),
    repair_cost INTEGER NOT NULL CHECK (repair_cost >= 0),
    confidence TEXT CHECK (confidence IN ('robust', 'needs_clarity', 'misleading', 'uncertain')),
    reasons TEXT NOT NULL CHECK (json_valid(reasons)),
    judged TEXT NOT NULL CHECK (json_valid(judged)),
    recommendations TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(recommendations))
) STRICT;
-- Unsure and right was lucky and is needs_clarity; unsure and wrong was needs_clarity and is uncertain.
INSERT INTO results_next SELECT answer_id, classification, hazard, unsafe_action, lost_stop, exact, completeness, correctness,
    type_conformance, repair_cost,
    CASE confidence WHEN 'lucky' THEN 'needs_clarity' WHEN 'needs_clarity' THEN 'uncertain' ELSE confidence END,
    reasons, judged, recommendations FROM results;
DROP TABLE results;
ALTER TABLE results_next RENAME TO results;
UPDATE runs SET verdict = json_set(verdict, '$.tally.confidence', json_patch('{}', json_object(
    'robust', json_extract(verdict, '$.tally.confidence.robust'),
    'needs_clarity', json_extract(verdict, '$.tally.confidence.lucky'),
    'misleading', json_extract(verdict, '$.tally.confidence.misleading'),
    'uncertain', json_extract(verdict, '$.tally.confidence.needs_clarity'))))
    WHERE json_type(verdict, '$.tally.confidence') = 'object';
", "
ALTER TABLE servers ADD COLUMN created_ms INTEGER;
ALTER TABLE servers ADD COLUMN updated_ms INTEGER;
ALTER TABLE servers ADD COLUMN connected_ms INTEGER;
UPDATE servers SET connected_ms = checked_ms WHERE status = 'active';
ALTER TABLE cases ADD COLUMN updated_ms INTEGER;
UPDATE cases SET updated_ms = added_ms;
ALTER TABLE answers ADD COLUMN retries INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0);
ALTER TABLE run_cases ADD COLUMN round INTEGER NOT NULL DEFAULT 0 CHECK (round >= 0);
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_time ON runs (began_ms);
CREATE INDEX cases_by_class ON cases (class);
CREATE INDEX settings_by_model ON settings (model);
CREATE INDEX certificates_by_run ON certificates (run_id);
"];
