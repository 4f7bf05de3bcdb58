-- Workers of the version before run on while and after this is applied: nothing that they read goes, nothing that they leave
-- out is required, and nothing that they write is refused.

-- What is cut of the past is found by these, and so is whether anything still names it. Each is built in about a second
-- for a million rows; writers wait that long.
CREATE INDEX commands_created_at_idx ON commands (created_at);
CREATE INDEX deployments_destroyed_idx ON deployments (name, created_at) WHERE lifecycle = 'destroyed';
CREATE INDEX deployment_history_rollout_id_idx ON deployment_history (rollout_id) WHERE rollout_id IS NOT NULL;
CREATE INDEX rollouts_from_revision_id_idx ON rollouts (from_revision_id);
CREATE INDEX rollouts_to_revision_id_idx ON rollouts (to_revision_id, started_at);
CREATE INDEX routes_revision_id_idx ON routes (revision_id);
CREATE INDEX routes_rollout_id_idx ON routes (rollout_id) WHERE rollout_id IS NOT NULL;
-- what this release writes, such as revisions with references to secrets, the one before it could not read: it warns
UPDATE installation SET contract = 2;
-- A generation that is silent for minutes is an answer, not a hung request: docs/traffic.md.
ALTER TABLE deployments
    ADD COLUMN idle_timeout_seconds double precision DEFAULT 3600 -- none: never
    CONSTRAINT deployments_idle_timeout_check CHECK (idle_timeout_seconds > 0);
-- what proxies speak to replicas
ALTER TABLE deployments
    ADD COLUMN protocol text DEFAULT 'http1' NOT NULL
    CONSTRAINT deployments_protocol_check CHECK (protocol IN ('http1', 'http2'));
-- that proxies answer callers by 503 themselves, as domain/traffic/maintenance.py has it; none: they do not
ALTER TABLE deployments ADD COLUMN maintenance jsonb;
-- what else differs from what proxies do with the requests of a new deployment, as domain/traffic/published.py has it
ALTER TABLE deployments ADD COLUMN rules jsonb DEFAULT '{}' NOT NULL;
-- the certificates that proxies show; kind: given by a file or a secret, from an authority (acme: one for each name), or
-- what the certificates of callers are checked with, of which chain is that. What is secret is sealed.
-- is_wanted: if not, it is shown until those that are wanted are there; read_at: a host, read_by, has found it as it is;
-- fault: why there is none, or none in its place; doubt: why some callers will not believe the one that is shown;
-- refused: why a proxy did not take it over;
-- order_url to challenge_xid: of an order under way
CREATE TABLE certificates (
    deployment_id uuid NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    is_wanted boolean DEFAULT 'true' NOT NULL,
    names text[] DEFAULT '{}' NOT NULL,
    chain text,
    sealed_key text,
    not_before timestamptz,
    not_after timestamptz,
    doubt text,
    refused text,
    fault text,
    failures integer DEFAULT '0' NOT NULL,
    read_at timestamptz,
    read_by text,
    due_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    taken_at timestamptz,
    leased_until timestamptz,
    order_url text,
    order_key text,
    token text,
    answer text,
    challenge_xid xid8,
    CONSTRAINT certificates_pkey PRIMARY KEY (deployment_id, kind, name),
    CONSTRAINT certificates_kind_check CHECK (kind IN ('given', 'acme', 'callers', 'replicas')),
    CONSTRAINT certificates_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id) ON DELETE CASCADE
);
CREATE INDEX certificates_due_idx ON certificates (due_at) WHERE is_wanted;
-- at each authority one, made when the first certificate is ordered
CREATE TABLE acme_accounts (
    directory text NOT NULL,
    sealed_key text NOT NULL,
    url text NOT NULL,
    CONSTRAINT acme_accounts_pkey PRIMARY KEY (directory)
);
-- what each host says of the secrets that revisions refer to; their values are nowhere here
-- asked_by: the deployment for whose revision
-- asked_at: when it was asked last; checked_at: since then it has looked; fault: why it cannot have the secret
-- leased_until: a worker looks at it until then, and no other one does
CREATE TABLE host_secrets (
    host text NOT NULL,
    reference text NOT NULL,
    asked_by text NOT NULL,
    asked_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    checked_at timestamptz,
    fault text,
    leased_until timestamptz,
    CONSTRAINT host_secrets_pkey PRIMARY KEY (host, reference, asked_by),
    CONSTRAINT host_secrets_host_fkey FOREIGN KEY(host) REFERENCES hosts (name) ON DELETE CASCADE
);
-- How rollouts ended that are sealed or cut, by strategy, outcome and how long they took; who counts adds those that are not
-- yet: the transaction that ends many of them would hold up all others here.
-- bucket: those that took no longer than the one of rollout_seconds() in that place, and longer than the one before it; the
-- last bucket holds those that took longer than all.
CREATE TABLE rollout_counts (
    strategy text NOT NULL,
    outcome text NOT NULL,
    bucket integer NOT NULL,
    count bigint NOT NULL,
    seconds double precision NOT NULL,
    CONSTRAINT rollout_counts_pkey PRIMARY KEY (strategy, outcome, bucket)
);

CREATE FUNCTION rollout_seconds() RETURNS double precision[] LANGUAGE sql IMMUTABLE
    AS $$ SELECT ARRAY[5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400]::double precision[] $$;

-- count: how many rollouts the row stands for
CREATE FUNCTION count_ended(ended rollouts) RETURNS rollout_counts LANGUAGE sql STABLE AS $$
    SELECT ended.strategy, ended.outcome, 1 + (SELECT count(*)::int FROM unnest(rollout_seconds()) bound WHERE bound < took),
           1::bigint, took
      FROM (SELECT greatest(0, extract(epoch FROM ended.ended_at - ended.started_at))::double precision AS took) t
$$;

CREATE FUNCTION count_cut_rollouts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rollout_counts AS known (strategy, outcome, bucket, count, seconds)
    SELECT c.strategy, c.outcome, c.bucket, count(*), sum(c.seconds)
      FROM cut, LATERAL count_ended(cut) c
     WHERE cut.outcome IS NOT NULL AND NOT cut.is_sealed
     GROUP BY c.strategy, c.outcome, c.bucket
     ORDER BY c.strategy, c.outcome, c.bucket -- one order for all, so that two cuts never wait for each other in a circle
        ON CONFLICT (strategy, outcome, bucket) DO UPDATE
       SET count = known.count + excluded.count, seconds = known.seconds + excluded.seconds;
    RETURN NULL;
END $$;

CREATE TRIGGER rollouts_cut AFTER DELETE ON rollouts REFERENCING OLD TABLE AS cut
    FOR EACH STATEMENT EXECUTE FUNCTION count_cut_rollouts();

-- A step is 2.5 kB of JSON, and Postgres compresses rows from 2 kB on, which took a tenth of a cycle: from 8 kB on is soon enough.
ALTER TABLE rollout_steps SET (toast_tuple_target = 8160);
-- whole_step: the last step before this one whose inputs are whole; this one's say what it saw otherwise than the step before it
ALTER TABLE rollout_steps ADD COLUMN whole_step integer
    CONSTRAINT rollout_steps_whole_step_check CHECK (whole_step > 0 AND whole_step < step_no);
-- Each step of a rollout writes its row anew, of half a kB: with room for that in its page, no index gets an entry for it.
ALTER TABLE rollouts SET (fillfactor = 50);
-- That the deployment is there follows from its revision, which another foreign key names with it.
ALTER TABLE rollouts DROP CONSTRAINT rollouts_deployment_id_fkey;
ALTER TABLE routes DROP CONSTRAINT routes_deployment_id_fkey;
-- is_undo: a person asked for the way back, which waits for no second word
-- last_failure: why the new replica that failed or sickened last did so, with the end of its log
-- unanswered: requests that the new revision left so while it answered none; none once it has answered one;
-- in_use: the old revision has answered somebody meanwhile
ALTER TABLE rollouts ADD COLUMN is_undo boolean DEFAULT false NOT NULL, ADD COLUMN last_failure text,
    ADD COLUMN in_use boolean DEFAULT false NOT NULL,
    ADD COLUMN unanswered integer DEFAULT 0 CONSTRAINT rollouts_unanswered_check CHECK (unanswered >= 0);
-- The settings that come with a rollout, and those of before, as domain/traffic/release.py has them; none: it brings none.
ALTER TABLE rollouts ADD COLUMN traffic jsonb, ADD COLUMN traffic_before jsonb;
-- How its replicas are spoken to, as domain/traffic/wire.py has it; none: as its deployment's are.
ALTER TABLE revisions ADD COLUMN wire jsonb;
-- reserved: for the rollout under way, whose settings name it; proxies know it from the exchange on
ALTER TABLE entrances ADD COLUMN reserved boolean DEFAULT false NOT NULL;

-- Whoever ends a rollout, of any release: completed, its settings become the deployment's; otherwise they go with it.
CREATE FUNCTION rollout_settles_traffic() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    settings jsonb := CASE WHEN NEW.outcome = 'completed' THEN NEW.traffic ELSE NEW.traffic_before END;
BEGIN
    IF NEW.outcome = 'completed' THEN
        UPDATE deployments
           SET request_timeout_seconds = (settings ->> 'request_timeout_seconds')::double precision,
               hedge_after_seconds = (settings ->> 'hedge_after_seconds')::double precision,
               idle_timeout_seconds = (settings ->> 'idle_timeout_seconds')::double precision,
               preview = (settings ->> 'preview')::boolean, protocol = settings ->> 'protocol', rules = settings -> 'rules'
         WHERE id = NEW.deployment_id;
        DELETE FROM entrances WHERE deployment_id = NEW.deployment_id
           AND (kind, value) NOT IN (SELECT e ->> 0, e ->> 1 FROM jsonb_array_elements(settings -> 'entrances') e);
        UPDATE entrances n SET reserved = false, strip_prefix = (e ->> 2)::boolean
          FROM jsonb_array_elements(settings -> 'entrances') e
         WHERE n.deployment_id = NEW.deployment_id AND n.kind = e ->> 0 AND n.value = e ->> 1;
    ELSE
        DELETE FROM entrances WHERE deployment_id = NEW.deployment_id AND reserved;
    END IF;
    UPDATE certificates SET is_wanted = false WHERE deployment_id = NEW.deployment_id
       AND (kind, name) NOT IN (SELECT c ->> 0, c ->> 1 FROM jsonb_array_elements(settings -> 'certificates') c);
    RETURN NULL;
END $$;

CREATE TRIGGER rollout_settles_traffic AFTER UPDATE OF outcome ON rollouts
    FOR EACH ROW WHEN (OLD.outcome IS NULL AND NEW.outcome IS NOT NULL AND NEW.traffic IS NOT NULL)
    EXECUTE FUNCTION rollout_settles_traffic();
-- is_sealed: its receipt was made, and it is counted
ALTER TABLE rollouts ADD COLUMN is_sealed boolean DEFAULT false NOT NULL;
CREATE INDEX rollouts_unsealed_idx ON rollouts (ended_at, id) WHERE outcome IS NOT NULL AND NOT is_sealed;
CREATE INDEX rollouts_ended_at_idx ON rollouts (ended_at);
-- empty, unless somebody has written here: the audit need not read the past
CREATE INDEX rollouts_contradicting_idx ON rollouts (id)
    WHERE outcome = 'completed' AND back_reason IS NOT NULL OR outcome = 'rolled_back' AND back_reason IS NULL;

-- who is told of transitions, and how: by a webhook, whose URL and secret only the workers know by this name, or by a task
CREATE TABLE subscriptions (
    name text NOT NULL,
    webhook text,
    task text,
    queue text,
    types text[] DEFAULT '{}' NOT NULL, -- none: all
    deployments text[] DEFAULT '{}' NOT NULL, -- none: all
    give_up_after_seconds integer NOT NULL,
    actor text NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamptz, -- since then its receiver wants no more
    ended_why text,
    CONSTRAINT subscriptions_pkey PRIMARY KEY (name),
    CONSTRAINT subscriptions_goes_one_way_check CHECK ((webhook IS NULL) <> (task IS NULL) AND (task IS NULL) = (queue IS NULL)),
    CONSTRAINT subscriptions_give_up_after_seconds_check CHECK (give_up_after_seconds > 0)
);

-- what subscriptions are still to be told: written with what it is about, gone once it is delivered
CREATE TABLE outbox (
    position bigint GENERATED ALWAYS AS IDENTITY, -- the order of the events of a deployment, whose lock its writer holds
    subscription text NOT NULL,
    deployment_id uuid NOT NULL,
    id uuid NOT NULL, -- of the event: the same for each subscription
    type text NOT NULL,
    deployment text NOT NULL,
    at timestamptz NOT NULL,
    data jsonb NOT NULL,
    tries integer DEFAULT '0' NOT NULL,
    due_at timestamptz DEFAULT clock_timestamp() NOT NULL, -- while it is being sent: when others may
    why text, -- the last try failed
    given_up_at timestamptz,
    CONSTRAINT outbox_pkey PRIMARY KEY (position),
    CONSTRAINT outbox_tries_check CHECK (tries >= 0),
    CONSTRAINT outbox_given_up_says_why_check CHECK (given_up_at IS NULL OR why IS NOT NULL),
    CONSTRAINT outbox_subscription_fkey FOREIGN KEY(subscription) REFERENCES subscriptions (name) ON DELETE CASCADE
);
CREATE INDEX outbox_lines_idx ON outbox (subscription, deployment_id, position) WHERE given_up_at IS NULL;
CREATE INDEX outbox_due_idx ON outbox (due_at) WHERE given_up_at IS NULL;
CREATE INDEX outbox_given_up_idx ON outbox (given_up_at) WHERE given_up_at IS NOT NULL;

-- came_up_at: since when a replica of failed_revision_id is well that came up after the last failure
-- short_lives: how often in a row one failed soon after it had come up
ALTER TABLE deployments ADD COLUMN came_up_at timestamptz, ADD COLUMN short_lives integer DEFAULT 0 NOT NULL;
-- when a tick of beat last reached a worker: one row, none before the first
CREATE TABLE beat (
    ticked_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    is_only boolean DEFAULT true NOT NULL,
    CONSTRAINT beat_pkey PRIMARY KEY (is_only),
    CONSTRAINT beat_is_only_check CHECK (is_only)
);
-- since when times that lay ahead count from now: by the last worker that found the database's clock set back, or started
ALTER TABLE installation ADD COLUMN counted_at timestamptz;
-- The trace of the message that began a rollout, as W3C's Trace Context writes it; none where it said none.
ALTER TABLE rollouts ADD COLUMN traceparent text;
-- when a replica first became healthy, which later reports leave: from then on how long it started is known
ALTER TABLE routes ADD COLUMN healthy_at timestamptz;
ALTER TABLE routes ADD COLUMN kept_until timestamptz;
-- where callers who stay with a replica find it; who has left has none as soon as another has taken it
ALTER TABLE routes ADD COLUMN seat integer CONSTRAINT routes_seat_check CHECK (seat >= 0);
-- no column that is stored: who looked before sees no row of a table that was written anew
ALTER TABLE deployments ADD COLUMN has_seats boolean GENERATED ALWAYS AS (rules ? 'sticky') VIRTUAL;
CREATE INDEX routes_seat_idx ON routes (deployment_id) WHERE seat IS NOT NULL;

-- who may ask over HTTP; of what a token's bearer shows only its SHA-256 is here
CREATE TABLE tokens (
    name text NOT NULL,
    hash bytea NOT NULL,
    role text NOT NULL,
    deployments text[] DEFAULT '{}' NOT NULL, -- none: all
    created_by text NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamptz, -- none: never
    last_used_at timestamptz,
    CONSTRAINT tokens_pkey PRIMARY KEY (name),
    CONSTRAINT tokens_hash_key UNIQUE (hash),
    CONSTRAINT tokens_hash_check CHECK (length(hash) = 32),
    CONSTRAINT tokens_role_check CHECK (role IN ('viewer', 'releaser', 'operator', 'admin'))
);
-- who has logged in to the page; of what the browser keeps only its SHA-256 is here
CREATE TABLE sessions (
    hash bytea NOT NULL,
    token text NOT NULL,
    ends_at timestamptz NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (hash),
    CONSTRAINT sessions_hash_check CHECK (length(hash) = 32),
    CONSTRAINT sessions_token_fkey FOREIGN KEY (token) REFERENCES tokens ON DELETE CASCADE
);
CREATE INDEX sessions_token_idx ON sessions (token);

-- Windows in which nothing starts: absolute, or by a cron line in a time zone, with a duration.
-- pauses: what is under way waits too
CREATE TABLE freezes (
    name text NOT NULL,
    cron text,
    time_zone text,
    duration_seconds integer,
    starts_at timestamptz,
    ends_at timestamptz,
    deployments text[] DEFAULT '{}' NOT NULL, -- names, or beginnings of names with a * behind; none, and no groups: all
    groups text[] DEFAULT '{}' NOT NULL,
    pauses boolean DEFAULT false NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT freezes_pkey PRIMARY KEY (name),
    CONSTRAINT freezes_has_one_window_check CHECK (
        num_nonnulls(cron, time_zone, duration_seconds) IN (0, 3) AND num_nonnulls(starts_at, ends_at) IN (0, 2)
        AND (cron IS NULL) <> (starts_at IS NULL)),
    CONSTRAINT freezes_lasts_check CHECK (
        coalesce(duration_seconds > 0, true) AND coalesce(ends_at > starts_at, true))
);
-- deployments that share a budget of rollouts; none: any number at once
CREATE TABLE deployment_groups (
    name text NOT NULL,
    most_at_once integer,
    in_order boolean DEFAULT false NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT deployment_groups_pkey PRIMARY KEY (name),
    CONSTRAINT deployment_groups_most_at_once_check CHECK (most_at_once > 0)
);
-- by name, so that a deployment may be grouped before it is there; each in one group, so that no two groups wait in a circle
CREATE TABLE deployment_group_members (
    deployment text NOT NULL,
    group_name text NOT NULL,
    position integer NOT NULL,
    CONSTRAINT deployment_group_members_pkey PRIMARY KEY (deployment),
    CONSTRAINT deployment_group_members_group_name_fkey FOREIGN KEY(group_name)
        REFERENCES deployment_groups (name) ON DELETE CASCADE
);
CREATE INDEX deployment_group_members_group_name_idx ON deployment_group_members (group_name, position);
-- what was asked of a deployment while somebody held its row, until it is carried out; no foreign key, whose check would wait
-- rollout_id: of a wish of Rollway's own, which is good while that rollout has ended and is the last one
CREATE TABLE wishes (
    number bigint GENERATED ALWAYS AS IDENTITY,
    deployment_id uuid NOT NULL,
    request_id text NOT NULL,
    task text NOT NULL,
    payload jsonb NOT NULL,
    rollout_id uuid,
    CONSTRAINT wishes_pkey PRIMARY KEY (number),
    CONSTRAINT wishes_request_id_key UNIQUE (request_id)
);
-- through_freeze: a person let it begin, and go on, in any freeze
ALTER TABLE rollouts ADD COLUMN through_freeze boolean DEFAULT false NOT NULL;
-- The receipts of rollouts that ended, each with the hash of the one before of its deployment. They outlive the rows that they
-- tell of, so nothing refers to those. text: what is hashed, JSON in one fixed form
CREATE TABLE receipts (
    rollout_id uuid NOT NULL,
    deployment_id uuid NOT NULL,
    number integer NOT NULL,
    text text NOT NULL,
    sha256 text NOT NULL,
    CONSTRAINT receipts_pkey PRIMARY KEY (rollout_id),
    CONSTRAINT receipts_number_key UNIQUE (deployment_id, number),
    CONSTRAINT receipts_number_check CHECK (number > 0)
);

-- A canary. weight: how many of 10,000 requests its new revision gets, none where all replicas share them; stage: which of
-- its weights that is. weight_xid: the transaction that set them, weight_known_at: when every live proxy had acknowledged it.
ALTER TABLE rollouts ADD COLUMN stage integer DEFAULT 0 NOT NULL, ADD COLUMN weight integer, ADD COLUMN weight_xid xid8,
    ADD COLUMN weight_known_at timestamptz,
    ADD CONSTRAINT rollouts_weight_check CHECK (weight >= 0 AND weight < 10000);

CREATE INDEX rollouts_weighed_idx ON rollouts (ended_at) WHERE weight IS NOT NULL OR stage > 0;

CREATE FUNCTION rollout_weighed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.weight_xid := pg_current_xact_id();
    RETURN NEW;
END $$;

CREATE TRIGGER rollout_begins_weighed BEFORE INSERT ON rollouts
    FOR EACH ROW WHEN (NEW.weight IS NOT NULL) EXECUTE FUNCTION rollout_weighed();
CREATE TRIGGER rollout_weighed BEFORE UPDATE OF weight, stage ON rollouts
    FOR EACH ROW WHEN ((NEW.weight, NEW.stage) IS DISTINCT FROM (OLD.weight, OLD.stage)) EXECUTE FUNCTION rollout_weighed();
-- The floor of a canary is one of requests: each side keeps replicas for its share of them. Where a statement takes healthy
-- serving ones of a side, at least share x floor of that side stay; what another canary left counts as old, as it answers
-- where too few old ones do. Weights are hundredths of a percent: two of them ask for no further replica.
-- At rest, where there is no room for one more, one less serves while a host is drained: it goes before its replacement comes.
CREATE OR REPLACE FUNCTION routes_above_floor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[];
    revised uuid[];
    broken record;
BEGIN
    SELECT array_agg(DISTINCT deployment_id), array_agg(DISTINCT revision_id) INTO ids, revised
      FROM (SELECT deployment_id, revision_id
              FROM (SELECT id, deployment_id, revision_id FROM was
                     WHERE status = 'healthy' AND traffic_status = 'active'
                    UNION ALL -- and no join, which would be planned for one row and compare each row with each
                    SELECT id, deployment_id, revision_id FROM became
                     WHERE status IN ('terminating', 'terminated')
                        OR (traffic_status = 'inactive' AND status <> 'failed')) served
             GROUP BY id, deployment_id, revision_id
            HAVING count(*) = 2) took;
    IF ids IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT d.name, d.lifecycle, s.whose, count(r.id) AS serving, s.least INTO broken
      FROM deployments d
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     CROSS JOIN LATERAL (SELECT '' AS whose, NULL::boolean AS new,
                                coalesce(o.floor, d.desired_replicas - CASE
                                    WHEN NOT d.may_surge AND EXISTS (SELECT FROM hosts WHERE drained_at IS NOT NULL)
                                    THEN 1 ELSE 0 END) AS least
                    UNION ALL
                    SELECT CASE WHEN side.new THEN ' of the canary' ELSE ' of the old side' END, side.new,
                           least(o.floor, greatest(sign(side.share), ceil((side.share - 2) * o.floor / 10000.0)))::int
                      FROM (VALUES (true, o.weight), (false, 10000 - o.weight)) side (new, share)
                     WHERE o.weight IS NOT NULL
                       AND EXISTS (SELECT FROM revisions v WHERE v.id = ANY(revised) AND v.deployment_id = d.id
                                      AND (v.id = d.deploying_revision_id) = side.new)) s
      LEFT JOIN routes r ON r.deployment_id = d.id AND r.status = 'healthy' AND r.traffic_status = 'active'
       AND (s.new IS NULL OR (r.revision_id = d.deploying_revision_id) = s.new)
     WHERE d.id = ANY(ids) AND d.lifecycle NOT IN ('destroying', 'destroyed')
     GROUP BY d.id, s.whose, s.least
    HAVING count(r.id) < s.least
     ORDER BY d.name, s.whose
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            MESSAGE = concat(broken.name, ': ', broken.serving, ' healthy replicas in traffic', broken.whose,
                             ' are fewer than the ', broken.least, ' to keep while ', broken.lifecycle),
            ERRCODE = 'RW002', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
-- What all live proxies told of a draining route at the last look: answers under way, 0 for so many
-- looks in a row.
CREATE TABLE drain_looks (
    route_id uuid NOT NULL,
    under_way integer NOT NULL,
    idle_looks integer NOT NULL,
    looked_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT drain_looks_pkey PRIMARY KEY (route_id),
    CONSTRAINT drain_looks_counts_check CHECK (under_way >= 0 AND idle_looks >= 0 AND (under_way = 0) = (idle_looks > 0)),
    CONSTRAINT drain_looks_route_id_fkey FOREIGN KEY(route_id) REFERENCES routes (id) ON DELETE CASCADE
);
-- host:port where a proxy tells what it has counted; none: it does not. told_at: since when it is known to tell there
ALTER TABLE proxies ADD COLUMN stats_address text, ADD COLUMN told_at timestamptz;
-- What proxies told of the answers of a rollout's revisions. They go with the rollout.
-- at: its end; reporting: the proxies that told what they counted, of those that were live
-- refused: requests that proxies answered themselves, for there was no replica
CREATE TABLE intervals (
    rollout_id uuid NOT NULL,
    id integer NOT NULL,
    at timestamptz NOT NULL,
    seconds double precision NOT NULL,
    reporting integer NOT NULL,
    live integer NOT NULL,
    refused integer NOT NULL,
    copies integer NOT NULL, -- of requests, that a canary answered before its first weight
    copies_failed integer NOT NULL,
    CONSTRAINT intervals_pkey PRIMARY KEY (rollout_id, id),
    CONSTRAINT intervals_counts_check CHECK (id > 0 AND seconds >= 0 AND least(refused, copies, copies_failed) >= 0
        AND reporting BETWEEN 0 AND live),
    CONSTRAINT intervals_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id) ON DELETE CASCADE
);
-- first_byte: how many took how long to their first byte; FIRST_BYTE_MS in domain/model/answers.py are the bucket's edges
CREATE TABLE answers (
    rollout_id uuid NOT NULL,
    interval_id integer NOT NULL,
    revision_id uuid NOT NULL, -- that of the rollout for its fresh baseline, whose answers are the old revision's too
    done integer NOT NULL,
    failed integer NOT NULL,
    cut integer NOT NULL, -- of those failed: they had begun
    first_byte integer[] NOT NULL,
    begun integer NOT NULL, -- requests sent, answered or not
    refused integer NOT NULL, -- of those done: with a 4xx
    again integer NOT NULL, -- of those done: sent to another replica too, since the first one failed
    again_failed integer NOT NULL, -- of these: failed all the same
    redirected integer NOT NULL, -- of those done: with a 3xx other than 304
    CONSTRAINT answers_pkey PRIMARY KEY (rollout_id, interval_id, revision_id),
    CONSTRAINT answers_counts_check CHECK (
        least(done, failed, cut, begun, refused, again, again_failed, redirected) >= 0 AND 0 <= ALL (first_byte)),
    CONSTRAINT answers_interval_id_fkey FOREIGN KEY(rollout_id, interval_id)
        REFERENCES intervals (rollout_id, id) ON DELETE CASCADE ON UPDATE CASCADE
);
-- What the judge of a canary goes by: all intervals in one row, Sums of domain/model/canary.py as JSON.
CREATE TABLE evidence (
    rollout_id uuid NOT NULL,
    sums json NOT NULL,
    CONSTRAINT evidence_pkey PRIMARY KEY (rollout_id),
    CONSTRAINT evidence_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id) ON DELETE CASCADE
);
-- How it came to that, a point now and then: Point of domain/judge/points.py.
CREATE TABLE evidence_points (
    rollout_id uuid NOT NULL,
    at timestamptz NOT NULL,
    weight integer NOT NULL,
    canary bigint NOT NULL,
    canary_failed bigint NOT NULL,
    control bigint NOT NULL,
    control_failed bigint NOT NULL,
    harm double precision NOT NULL,
    good double precision NOT NULL,
    CONSTRAINT evidence_points_pkey PRIMARY KEY (rollout_id, at),
    CONSTRAINT evidence_points_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id) ON DELETE CASCADE
);
-- what each proxy's counters showed at the last look of a rollout: the next one counts from there
-- of_revisions: {revision id: [done, failed, first_byte, cut, begun, refused, again, again_failed, redirected]}
CREATE TABLE proxy_counters (
    rollout_id uuid NOT NULL,
    node_id text NOT NULL,
    uptime integer NOT NULL,
    refused bigint NOT NULL,
    copies bigint NOT NULL,
    copies_failed bigint NOT NULL,
    of_revisions jsonb NOT NULL,
    CONSTRAINT proxy_counters_pkey PRIMARY KEY (rollout_id, node_id),
    CONSTRAINT proxy_counters_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id) ON DELETE CASCADE
);
-- What proxies tell may move the count too. proxies: how many should have told a value; silent: the node ids of those that did not.
ALTER TABLE autoscaling_rules DROP CONSTRAINT autoscaling_rules_source_check,
    ADD CONSTRAINT autoscaling_rules_source_check CHECK (source IN ('replicas', 'pushed', 'proxy'));
ALTER TABLE metric_values ADD COLUMN proxies integer DEFAULT 0 NOT NULL, ADD COLUMN silent jsonb DEFAULT '[]' NOT NULL;
-- the command that a person must give before the rollout goes on, as the last look decided; none: nobody is waited for
ALTER TABLE deployments ADD COLUMN waits_for text;
-- the names of the webhooks that its workers know; none: a worker of the version before says nothing of them
ALTER TABLE hosts ADD COLUMN webhooks text[];
-- folders, programs and files of variables from which it gives every deployment secrets
ALTER TABLE hosts ADD COLUMN secrets_for_all text[] DEFAULT '{}' NOT NULL;
-- as whom the processes of a host run whose revision names nobody; none: as the worker's own user
ALTER TABLE hosts ADD COLUMN replica_user text;
-- when it last showed itself after a time without a sign of life: what ended meanwhile is no fault of its revision
ALTER TABLE hosts ADD COLUMN back_at timestamptz;
-- unasked_since: from then on its workers said that Redis, by which they are asked to work, does not answer them; deaf_looks: how many
-- looks in a row found it so; deaf_since: enough of them did, so that it gets no new replicas
ALTER TABLE hosts ADD COLUMN unasked_since timestamptz,
    ADD COLUMN deaf_looks integer DEFAULT 0 NOT NULL CONSTRAINT hosts_deaf_looks_check CHECK (deaf_looks >= 0),
    ADD COLUMN deaf_since timestamptz;
-- a person empties it: it gets no new replicas, and those that it has are replaced on others; drained_by: who asked
ALTER TABLE hosts ADD COLUMN drained_at timestamptz, ADD COLUMN drained_by text;
-- is_walled: added with a token for some deployments, so it does not choose to run as a worker's own user
ALTER TABLE revisions ADD COLUMN is_walled boolean
    DEFAULT coalesce(current_setting('rollway.is_walled', true), '') = 'on' NOT NULL;
-- as its policy says, outside a rollout: false where there is no room for one more than are wanted
ALTER TABLE deployments ADD COLUMN may_surge boolean DEFAULT true NOT NULL;
UPDATE deployments d SET may_surge = false FROM policies p
 WHERE p.deployment_id = d.id AND (p.strategy = 'recreate' OR p.spec ->> 'max_surge' ~ '^0+[^0-9]?$');
-- What callers got within the last hour, by the minute and the revision that answered, as proxies told: Requests of
-- domain/traffic/callers.py. revision_id: all zeros where there was no replica.
CREATE TABLE requests (
    deployment_id uuid NOT NULL,
    minute timestamptz NOT NULL,
    revision_id uuid NOT NULL,
    fine bigint NOT NULL,
    redirected bigint NOT NULL,
    refused bigint NOT NULL,
    failed bigint NOT NULL,
    waited bigint[] NOT NULL,
    CONSTRAINT requests_pkey PRIMARY KEY (deployment_id, minute, revision_id)
) WITH (fillfactor = 50);
CREATE INDEX requests_minute_idx ON requests (minute);
-- The same since it was first counted, for metrics. deployment: its name, or (other); at: of the last request
CREATE TABLE request_sums (
    deployment text NOT NULL,
    revision_id uuid NOT NULL,
    fine bigint NOT NULL,
    redirected bigint NOT NULL,
    refused bigint NOT NULL,
    failed bigint NOT NULL,
    waited bigint[] NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT request_sums_pkey PRIMARY KEY (deployment, revision_id)
) WITH (fillfactor = 50);
