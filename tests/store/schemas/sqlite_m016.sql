-- What `survey migrate` made of an empty SQLite database when m013 was the newest step.
BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'survey','m001_foundation','2026-11-21 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'survey','m002_invitations','2026-11-21 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'survey','m003_schedules','2026-11-22 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'survey','m004_accounts','2026-11-22 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'survey','m005_workspace','2026-11-22 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'survey','m006_sealing','2026-11-24 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'survey','m007_collaboration','2026-11-26 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(8,'survey','m008_pictures','2026-11-26 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(9,'survey','m009_release_notices','2026-11-28 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(10,'survey','m010_damage','2026-11-26 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(11,'survey','m011_sign_ins','2026-11-28 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(12,'survey','m012_digests','2026-11-28 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(13,'survey','m013_strata','2026-11-28 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(14,'survey','m014_short_ids','2026-11-28 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(15,'survey','m015_whole_ids','2026-11-28 00:00:00+00:00');
INSERT INTO "_sqlite_migrations" VALUES(16,'survey','m016_titles','2026-11-28 00:00:00+00:00');
CREATE TABLE block (
        survey INTEGER NOT NULL REFERENCES survey (key),
        stratum TEXT NOT NULL,
        bucket TEXT NOT NULL DEFAULT '',
        question INTEGER NOT NULL,
        block INTEGER NOT NULL,
        n INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (survey, stratum, bucket, question, block)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE counts (
        survey INTEGER NOT NULL REFERENCES survey (key),
        stratum TEXT NOT NULL,
        bucket TEXT NOT NULL DEFAULT '',
        question INTEGER NOT NULL,
        option INTEGER NOT NULL,
        n INTEGER NOT NULL,
        PRIMARY KEY (survey, stratum, bucket, question, option)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE inbox (
        survey INTEGER NOT NULL REFERENCES survey (key),
        id BLOB NOT NULL,
        stratum TEXT NOT NULL,
        codes BLOB NOT NULL,
        PRIMARY KEY (survey, id)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE login_session (
        token_hash BLOB PRIMARY KEY,
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        started INTEGER NOT NULL,
        used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
CREATE TABLE release (
        survey INTEGER PRIMARY KEY REFERENCES survey (key),
        number INTEGER NOT NULL,
        n INTEGER NOT NULL
    ) STRICT;
CREATE TABLE researcher (
        key INTEGER PRIMARY KEY,
        email TEXT NOT NULL UNIQUE COLLATE NOCASE,
        password_hash TEXT NOT NULL
    ) STRICT;
CREATE TABLE seen (
        survey INTEGER NOT NULL REFERENCES survey (key),
        id BLOB NOT NULL,
        PRIMARY KEY (survey, id)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE survey (
        key INTEGER PRIMARY KEY,
        slug TEXT NOT NULL,
        version INTEGER NOT NULL,
        definition BLOB NOT NULL,
        sha256 TEXT NOT NULL UNIQUE,
        state TEXT NOT NULL CHECK (state IN ('open', 'superseded', 'closed')),
        changed TEXT NOT NULL,
        UNIQUE (slug, version)
    ) STRICT;
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE TRIGGER published_definition_is_frozen
        BEFORE UPDATE OF key, slug, version, definition, sha256 ON survey
        BEGIN SELECT RAISE(ABORT, 'a published definition is never changed'); END;
CREATE TRIGGER published_definition_is_not_replaced
        BEFORE INSERT ON survey
        WHEN EXISTS (SELECT 1 FROM survey WHERE key = NEW.key OR sha256 = NEW.sha256
                     OR (slug = NEW.slug AND version = NEW.version))
        BEGIN SELECT RAISE(ABORT, 'a published definition is never replaced'); END;
CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END;
CREATE TABLE invitation (
    survey INTEGER NOT NULL REFERENCES survey (key),
    token_hash BLOB NOT NULL,
    stratum TEXT NOT NULL,
    spent INTEGER NOT NULL CHECK (spent IN (0, 1)),
    PRIMARY KEY (survey, token_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE schedule (
    survey INTEGER PRIMARY KEY REFERENCES survey (key),
    opens TEXT NOT NULL,
    closes TEXT NOT NULL,
    most INTEGER NOT NULL CHECK (most >= 0)
) STRICT;
CREATE TABLE action (
        number INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        slug TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
CREATE TABLE admin (researcher INTEGER PRIMARY KEY REFERENCES researcher (key)) STRICT;
CREATE TABLE membership (
        slug TEXT NOT NULL,
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        PRIMARY KEY (slug, researcher)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE recovery_code (
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        code_hash BLOB NOT NULL,
        PRIMARY KEY (researcher, code_hash)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE second_factor (
        researcher INTEGER PRIMARY KEY REFERENCES researcher (key),
        secret TEXT NOT NULL,
        step INTEGER NOT NULL
    ) STRICT;
CREATE TABLE colleague_link (
        token_hash BLOB PRIMARY KEY,
        slug TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        expires INTEGER NOT NULL,
        maker INTEGER NOT NULL REFERENCES researcher (key)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE draft (
        key INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        who TEXT NOT NULL,
        at INTEGER NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (key, revision)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE api_token (
        token_hash BLOB PRIMARY KEY,
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        name TEXT NOT NULL,
        scopes TEXT NOT NULL,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
CREATE TABLE plan (
        survey INTEGER PRIMARY KEY REFERENCES survey (key),
        n INTEGER NOT NULL CHECK (n >= 0),
        strata TEXT NOT NULL
    ) STRICT;
CREATE TABLE archived (slug TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE sign_in_try (
        hash BLOB PRIMARY KEY,
        tries INTEGER NOT NULL,
        since INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
CREATE TABLE deleted (
        kind TEXT NOT NULL CHECK (kind IN ('survey', 'draft')),
        key INTEGER NOT NULL,
        slug TEXT NOT NULL,
        version INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        day TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE sealing_key (
    survey INTEGER NOT NULL,
    period INTEGER NOT NULL,
    public_key BLOB NOT NULL,
    PRIMARY KEY (survey, period, public_key)
) STRICT, WITHOUT ROWID;
CREATE TABLE pending (
    survey INTEGER NOT NULL REFERENCES survey (key),
    batch BLOB NOT NULL,
    period INTEGER NOT NULL,
    stratum TEXT NOT NULL,
    is_resealed INTEGER NOT NULL CHECK (is_resealed IN (0, 1)),
    ids BLOB NOT NULL,
    invitations BLOB NOT NULL,
    box BLOB NOT NULL,
    PRIMARY KEY (survey, batch)
) STRICT, WITHOUT ROWID;
CREATE TABLE pending_id (
    survey INTEGER NOT NULL REFERENCES survey (key),
    id BLOB NOT NULL,
    PRIMARY KEY (survey, id)
) STRICT, WITHOUT ROWID;
ALTER TABLE release ADD COLUMN time INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER published_definition_is_not_deleted_before_its_reports;
CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END;
DELETE FROM inbox WHERE survey IN (SELECT key FROM survey WHERE substr(slug, 1, 6) = 'trial-');
INSERT INTO pending_id (survey, id) SELECT survey, id FROM inbox ORDER BY survey, id;
CREATE TABLE result_link (
    token_hash BLOB PRIMARY KEY,
    slug TEXT NOT NULL,
    label TEXT NOT NULL,
    expires INTEGER NOT NULL,
    maker INTEGER NOT NULL REFERENCES researcher (key)
) STRICT, WITHOUT ROWID;
CREATE TABLE public_results (
    slug TEXT PRIMARY KEY
, license TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
CREATE TABLE release_notice (
    slug TEXT NOT NULL,
    researcher INTEGER NOT NULL REFERENCES researcher (key),
    url TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 0),
    tries INTEGER NOT NULL CHECK (tries >= 0),
    problem TEXT NOT NULL,
    PRIMARY KEY (slug, researcher, url)
) STRICT, WITHOUT ROWID;
CREATE TABLE draft_comment (
    number INTEGER PRIMARY KEY,
    draft INTEGER NOT NULL,
    question INTEGER NOT NULL,
    researcher INTEGER NOT NULL REFERENCES researcher (key),
    at INTEGER NOT NULL,
    resolved INTEGER NOT NULL CHECK (resolved IN (0, 1)),
    content TEXT NOT NULL
) STRICT;
CREATE TABLE trend_note (
    slug TEXT NOT NULL,
    number INTEGER NOT NULL,
    day TEXT NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (slug, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE team_look (
    slug TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    accent TEXT NOT NULL,
    logo BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE picture (
    sha256 TEXT PRIMARY KEY,
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE damaged_batch (
    survey INTEGER NOT NULL REFERENCES survey (key),
    batch BLOB NOT NULL,
    period INTEGER NOT NULL,
    stratum TEXT NOT NULL,
    is_resealed INTEGER NOT NULL CHECK (is_resealed IN (0, 1)),
    ids BLOB NOT NULL,
    invitations BLOB NOT NULL,
    box BLOB NOT NULL,
    PRIMARY KEY (survey, batch)
) STRICT, WITHOUT ROWID;
CREATE TABLE release_failure (
    survey INTEGER PRIMARY KEY REFERENCES survey (key),
    since INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;
CREATE TABLE failed_sign_in (
    researcher INTEGER PRIMARY KEY,
    n INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT;
CREATE TABLE instance_rule (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
ALTER TABLE block ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE pending ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE release ADD COLUMN ids_digest BLOB NOT NULL DEFAULT x'';
CREATE INDEX survey_comparison ON survey (key, slug, version, sha256, state, changed);
CREATE INDEX schedule_comparison ON schedule (survey, opens, closes, most);
CREATE INDEX inbox_comparison ON inbox (survey, id, stratum, codes);
CREATE INDEX sealing_key_comparison ON sealing_key (survey, period, public_key);
CREATE INDEX damaged_batch_comparison ON damaged_batch (survey, batch, period, stratum, is_resealed, ids, invitations, box);
CREATE INDEX release_comparison ON release (survey, number, n, time, ids_digest);
CREATE INDEX release_failure_comparison ON release_failure (survey, since, error);
CREATE INDEX invitation_comparison ON invitation (survey, token_hash, stratum, spent);
CREATE INDEX researcher_comparison ON researcher (key, email COLLATE BINARY, password_hash);
CREATE INDEX admin_comparison ON admin (researcher);
CREATE INDEX second_factor_comparison ON second_factor (researcher, secret, step);
CREATE INDEX recovery_code_comparison ON recovery_code (researcher, code_hash);
CREATE INDEX membership_comparison ON membership (slug, researcher, role);
CREATE INDEX colleague_link_comparison ON colleague_link (token_hash, slug, role, expires, maker);
CREATE INDEX draft_comparison ON draft (key, revision, who, at, content);
CREATE INDEX api_token_comparison ON api_token (token_hash, researcher, name, scopes, created);
CREATE INDEX plan_comparison ON plan (survey, n, strata);
CREATE INDEX archived_comparison ON archived (slug);
CREATE INDEX deleted_comparison ON deleted (kind, key, slug, version, sha256, day);
CREATE INDEX action_comparison ON action (number, at, who, what, slug, detail);
CREATE INDEX sign_in_try_comparison ON sign_in_try (hash, tries, since);
CREATE INDEX login_session_comparison ON login_session (token_hash, researcher, started, used);
CREATE INDEX result_link_comparison ON result_link (token_hash, slug, label, expires, maker);
CREATE INDEX public_results_comparison ON public_results (slug, license);
CREATE INDEX release_notice_comparison ON release_notice (slug, researcher, url, n, tries, problem);
CREATE INDEX draft_comment_comparison ON draft_comment (number, draft, question, researcher, at, resolved, content);
CREATE INDEX trend_note_comparison ON trend_note (slug, number, day, version, content);
CREATE INDEX team_look_comparison ON team_look (slug, name, accent, logo);
CREATE INDEX failed_sign_in_comparison ON failed_sign_in (researcher, n, last);
CREATE INDEX instance_rule_comparison ON instance_rule (name);
CREATE INDEX pending_stratum ON pending (survey, stratum, period, batch);
CREATE TABLE released_ids (
    survey INTEGER NOT NULL REFERENCES survey (key),
    first BLOB NOT NULL,
    ids BLOB NOT NULL,
    PRIMARY KEY (survey, first)
) STRICT, WITHOUT ROWID;
DROP TRIGGER published_definition_is_not_deleted_before_its_reports;
CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM released_ids WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END;
DROP TABLE seen;
ALTER TABLE survey ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE draft ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE draft ADD COLUMN short_name TEXT NOT NULL DEFAULT '';
DROP INDEX survey_comparison;
CREATE INDEX survey_comparison ON survey (key, slug, version, sha256, state, changed, title);
DROP INDEX draft_comparison;
CREATE INDEX draft_comparison ON draft (key, revision, who, at, title, short_name, content);
COMMIT;
