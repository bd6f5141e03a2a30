-- What `survey migrate` made of an empty PostgreSQL database when m013 was the newest step.
CREATE TABLE applied_migration (name text COLLATE "C" PRIMARY KEY);
CREATE TABLE survey (
key bigint PRIMARY KEY,
slug text COLLATE "C" NOT NULL,
version bigint NOT NULL,
definition bytea NOT NULL,
sha256 text COLLATE "C" NOT NULL UNIQUE,
state text COLLATE "C" NOT NULL CHECK (state IN ('open', 'superseded', 'closed')),
changed text COLLATE "C" NOT NULL,
UNIQUE (slug, version)
);
CREATE TABLE inbox (
    survey bigint NOT NULL,
    id bytea NOT NULL CHECK (octet_length(id) = 16),
    stratum text COLLATE "C" NOT NULL,
    codes bytea NOT NULL,
    PRIMARY KEY (survey, id)
);
CREATE TABLE seen (
    survey bigint NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (survey, id)
);
CREATE TABLE block (
    survey bigint NOT NULL REFERENCES survey (key),
    stratum text COLLATE "C" NOT NULL,
    bucket text COLLATE "C" NOT NULL,
    question bigint NOT NULL,
    block bigint NOT NULL,
    n bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (survey, stratum, bucket, question, block)
);
ALTER TABLE block ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE counts (
    survey bigint NOT NULL REFERENCES survey (key),
    stratum text COLLATE "C" NOT NULL,
    bucket text COLLATE "C" NOT NULL,
    question bigint NOT NULL,
    option bigint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (survey, stratum, bucket, question, option)
);
CREATE TABLE release (
    survey bigint PRIMARY KEY REFERENCES survey (key),
    number bigint NOT NULL,
    n bigint NOT NULL
);
CREATE TABLE researcher (
    key bigint PRIMARY KEY,
    email text COLLATE "C" NOT NULL,
    password_hash text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX researcher_email ON researcher (lower(email));
CREATE TABLE login_session (
    token_hash bytea PRIMARY KEY,
    researcher bigint NOT NULL REFERENCES researcher (key),
    started bigint NOT NULL,
    used bigint NOT NULL
);
CREATE FUNCTION refuse_a_changed_definition() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'a published definition is never changed'
        USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER published_definition_is_frozen
    BEFORE UPDATE OF key, slug, version, definition, sha256 ON survey
    FOR EACH ROW EXECUTE FUNCTION refuse_a_changed_definition();
CREATE TRIGGER published_definition_is_not_truncated
    BEFORE TRUNCATE ON survey
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_a_changed_definition();
CREATE FUNCTION refuse_a_deletion_before_the_reports() RETURNS trigger
    LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        THEN RAISE EXCEPTION 'a survey is deleted after its reports, never before'
            USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN OLD;
    END $$;
CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
    BEFORE DELETE ON survey
    FOR EACH ROW EXECUTE FUNCTION refuse_a_deletion_before_the_reports();
INSERT INTO applied_migration (name) VALUES ('m001_foundation');
CREATE TABLE invitation (
    survey bigint NOT NULL REFERENCES survey (key),
    token_hash bytea NOT NULL,
    stratum text COLLATE "C" NOT NULL,
    spent bigint NOT NULL CHECK (spent IN (0, 1)),
    PRIMARY KEY (survey, token_hash)
);
INSERT INTO applied_migration (name) VALUES ('m002_invitations');
CREATE TABLE schedule (
    survey bigint PRIMARY KEY REFERENCES survey (key),
    opens text COLLATE "C" NOT NULL,
    closes text COLLATE "C" NOT NULL,
    most bigint NOT NULL CHECK (most >= 0)
);
INSERT INTO applied_migration (name) VALUES ('m003_schedules');
CREATE TABLE admin (researcher bigint PRIMARY KEY REFERENCES researcher (key));
CREATE TABLE second_factor (
        researcher bigint PRIMARY KEY REFERENCES researcher (key),
        secret text COLLATE "C" NOT NULL,
        step bigint NOT NULL
    );
CREATE TABLE recovery_code (
        researcher bigint NOT NULL REFERENCES researcher (key),
        code_hash bytea NOT NULL,
        PRIMARY KEY (researcher, code_hash)
    );
CREATE TABLE membership (
        slug text COLLATE "C" NOT NULL,
        researcher bigint NOT NULL REFERENCES researcher (key),
        role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        PRIMARY KEY (slug, researcher)
    );
CREATE TABLE action (
        number bigint PRIMARY KEY,
        at bigint NOT NULL,
        who text COLLATE "C" NOT NULL,
        what text COLLATE "C" NOT NULL,
        slug text COLLATE "C" NOT NULL,
        detail text COLLATE "C" NOT NULL
    );
INSERT INTO applied_migration (name) VALUES ('m004_accounts');
CREATE TABLE colleague_link (
        token_hash bytea PRIMARY KEY,
        slug text COLLATE "C" NOT NULL,
        role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        expires bigint NOT NULL,
        maker bigint NOT NULL REFERENCES researcher (key)
    );
CREATE TABLE draft (
        key bigint NOT NULL,
        revision bigint NOT NULL,
        who text COLLATE "C" NOT NULL,
        at bigint NOT NULL,
        content text COLLATE "C" NOT NULL,
        PRIMARY KEY (key, revision)
    );
CREATE TABLE api_token (
        token_hash bytea PRIMARY KEY,
        researcher bigint NOT NULL REFERENCES researcher (key),
        name text COLLATE "C" NOT NULL,
        scopes text COLLATE "C" NOT NULL,
        created bigint NOT NULL
    );
CREATE TABLE plan (
        survey bigint PRIMARY KEY REFERENCES survey (key),
        n bigint NOT NULL CHECK (n >= 0),
        strata text COLLATE "C" NOT NULL
    );
CREATE TABLE archived (slug text COLLATE "C" PRIMARY KEY);
CREATE TABLE sign_in_try (
        hash bytea PRIMARY KEY,
        tries bigint NOT NULL,
        since bigint NOT NULL
    );
CREATE TABLE deleted (
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('survey', 'draft')),
        key bigint NOT NULL,
        slug text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        sha256 text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        PRIMARY KEY (kind, key)
    );
INSERT INTO applied_migration (name) VALUES ('m005_workspace');
CREATE TABLE sealing_key (
    survey bigint NOT NULL,
    period bigint NOT NULL,
    public_key bytea NOT NULL,
    PRIMARY KEY (survey, period, public_key)
);
CREATE TABLE pending (
    survey bigint NOT NULL,
    batch bytea NOT NULL,
    period bigint NOT NULL,
    stratum text COLLATE "C" NOT NULL,
    is_resealed bigint NOT NULL CHECK (is_resealed IN (0, 1)),
    ids bytea NOT NULL,
    invitations bytea NOT NULL,
    box bytea NOT NULL,
    PRIMARY KEY (survey, batch)
);
ALTER TABLE pending ALTER COLUMN box SET STORAGE EXTERNAL;
CREATE TABLE pending_id (
    survey bigint NOT NULL,
    id bytea NOT NULL CHECK (octet_length(id) = 16),
    PRIMARY KEY (survey, id)
);
ALTER TABLE release ADD COLUMN time bigint NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION refuse_a_deletion_before_the_reports() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
            THEN RAISE EXCEPTION 'a survey is deleted after its reports, never before'
                USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN OLD;
        END $$;
DELETE FROM inbox WHERE survey IN (SELECT key FROM survey WHERE substr(slug, 1, 6) = 'trial-');
INSERT INTO pending_id (survey, id) SELECT survey, id FROM inbox ORDER BY survey, id;
INSERT INTO applied_migration (name) VALUES ('m006_sealing');
CREATE TABLE result_link (
    token_hash bytea PRIMARY KEY,
    slug text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    expires bigint NOT NULL,
    maker bigint NOT NULL REFERENCES researcher (key)
);
CREATE TABLE public_results (
    slug text COLLATE "C" PRIMARY KEY
);
CREATE TABLE draft_comment (
    number bigint PRIMARY KEY,
    draft bigint NOT NULL,
    question bigint NOT NULL,
    researcher bigint NOT NULL REFERENCES researcher (key),
    at bigint NOT NULL,
    resolved bigint NOT NULL CHECK (resolved IN (0, 1)),
    content text COLLATE "C" NOT NULL
);
CREATE TABLE trend_note (
    slug text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    day text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    content text COLLATE "C" NOT NULL,
    PRIMARY KEY (slug, number)
);
CREATE TABLE team_look (
    slug text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    accent text COLLATE "C" NOT NULL,
    logo bytea NOT NULL
);
INSERT INTO applied_migration (name) VALUES ('m007_collaboration');
CREATE TABLE picture (
    sha256 text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL
);
INSERT INTO applied_migration (name) VALUES ('m008_pictures');
CREATE TABLE release_notice (
    slug text COLLATE "C" NOT NULL,
    researcher bigint NOT NULL REFERENCES researcher (key),
    url text COLLATE "C" NOT NULL,
    n bigint NOT NULL CHECK (n >= 0),
    tries bigint NOT NULL CHECK (tries >= 0),
    problem text COLLATE "C" NOT NULL,
    PRIMARY KEY (slug, researcher, url)
);
ALTER TABLE public_results ADD COLUMN license text COLLATE "C" NOT NULL DEFAULT '';
INSERT INTO applied_migration (name) VALUES ('m009_release_notices');
CREATE TABLE damaged_batch (
    survey bigint NOT NULL,
    batch bytea NOT NULL,
    period bigint NOT NULL,
    stratum text COLLATE "C" NOT NULL,
    is_resealed bigint NOT NULL CHECK (is_resealed IN (0, 1)),
    ids bytea NOT NULL,
    invitations bytea NOT NULL,
    box bytea NOT NULL,
    PRIMARY KEY (survey, batch)
);
ALTER TABLE damaged_batch ALTER COLUMN box SET STORAGE EXTERNAL;
CREATE TABLE release_failure (
    survey bigint PRIMARY KEY REFERENCES survey (key),
    since bigint NOT NULL,
    error text COLLATE "C" NOT NULL
);
INSERT INTO applied_migration (name) VALUES ('m010_damage');
CREATE TABLE failed_sign_in (
    researcher bigint PRIMARY KEY,
    n bigint NOT NULL,
    last bigint NOT NULL
);
CREATE TABLE instance_rule (
    name text COLLATE "C" PRIMARY KEY
);
INSERT INTO applied_migration (name) VALUES ('m011_sign_ins');
ALTER TABLE block ADD COLUMN digest bytea NOT NULL DEFAULT '';
ALTER TABLE pending ADD COLUMN digest bytea NOT NULL DEFAULT '';
ALTER TABLE release ADD COLUMN ids_digest bytea NOT NULL DEFAULT '';
INSERT INTO applied_migration (name) VALUES ('m012_digests');
CREATE INDEX pending_stratum ON pending (survey, stratum, period, batch);
INSERT INTO applied_migration (name) VALUES ('m013_strata');
CREATE TABLE released_ids (
    survey bigint NOT NULL,
    first bytea NOT NULL,
    ids bytea NOT NULL,
    PRIMARY KEY (survey, first)
);
ALTER TABLE pending_id DROP CONSTRAINT pending_id_id_check;
CREATE OR REPLACE FUNCTION refuse_a_deletion_before_the_reports() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM released_ids WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
            THEN RAISE EXCEPTION 'a survey is deleted after its reports, never before'
                USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN OLD;
        END $$;
INSERT INTO applied_migration (name) VALUES ('m014_short_ids');
DROP TABLE seen;
INSERT INTO applied_migration (name) VALUES ('m015_whole_ids');
ALTER TABLE survey ADD COLUMN title text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE draft ADD COLUMN title text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE draft ADD COLUMN short_name text COLLATE "C" NOT NULL DEFAULT '';
INSERT INTO applied_migration (name) VALUES ('m016_titles');
