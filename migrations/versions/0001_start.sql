-- each request id with its payload and its answer: what was sent twice is done once
CREATE TABLE commands (
    request_id text NOT NULL,
    name text NOT NULL,
    payload jsonb NOT NULL,
    actor text NOT NULL,
    result jsonb,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT commands_pkey PRIMARY KEY (request_id)
);

-- a deployment: where it stands, what it runs, when somebody should look at it again
CREATE TABLE deployments (
    id uuid DEFAULT uuidv7() NOT NULL,
    name text NOT NULL,
    desired_replicas integer NOT NULL,
    lifecycle text DEFAULT 'pending' NOT NULL,
    sub_step text,
    current_revision_id uuid,
    deploying_revision_id uuid,
    rollout_id uuid,
    version bigint DEFAULT '1' NOT NULL,
    due_at timestamptz,
    paused_at timestamptz,
    phase_started_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    phase_attempts integer DEFAULT '0' NOT NULL,
    reason text DEFAULT '' NOT NULL,
    degraded_reason text,
    retry_at timestamptz,
    failed_revision_id uuid,
    failed_starts integer DEFAULT '0' NOT NULL,
    last_failed_at timestamptz,
    last_autoscaled_at timestamptz,
    count_stopping boolean DEFAULT false NOT NULL,
    request_timeout_seconds double precision, -- none: no limit
    hedge_after_seconds double precision DEFAULT '5', -- none: never
    preview boolean DEFAULT true NOT NULL,
    history_id uuid,
    history_key text,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT deployments_pkey PRIMARY KEY (id),
    CONSTRAINT deployments_desired_replicas_check CHECK (desired_replicas >= 0),
    CONSTRAINT deployments_lifecycle_check CHECK (lifecycle IN ('pending', 'scaling', 'ready', 'deploying', 'destroying', 'destroyed')),
    CONSTRAINT deployments_sub_step_check CHECK (sub_step IN ('provisioning', 'rolling_back')),
    CONSTRAINT deployments_deploying_has_revision_check CHECK ((lifecycle = 'deploying') = (deploying_revision_id IS NOT NULL)),
    CONSTRAINT deployments_deploying_has_rollout_check CHECK ((lifecycle = 'deploying') = (rollout_id IS NOT NULL)),
    CONSTRAINT deployments_deploying_has_sub_step_check CHECK ((lifecycle = 'deploying') = (sub_step IS NOT NULL)),
    CONSTRAINT deployments_deploying_is_another_revision_check CHECK (deploying_revision_id <> current_revision_id),
    CONSTRAINT deployments_working_has_revision_check CHECK (lifecycle NOT IN ('scaling', 'ready', 'deploying') OR current_revision_id IS NOT NULL),
    CONSTRAINT deployments_only_rollouts_pause_check CHECK (paused_at IS NULL OR lifecycle = 'deploying'),
    CONSTRAINT deployments_degraded_is_retried_check CHECK ((degraded_reason IS NULL) = (retry_at IS NULL)),
    CONSTRAINT deployments_request_timeout_check CHECK (request_timeout_seconds > 0),
    CONSTRAINT deployments_hedge_check CHECK (hedge_after_seconds > 0),
    CONSTRAINT deployments_failed_starts_check CHECK (failed_starts >= 0 AND (failed_starts = 0 OR (failed_revision_id IS NOT NULL AND last_failed_at IS NOT NULL)))
);
CREATE INDEX deployments_due_idx ON deployments (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX deployments_name_key ON deployments (name) WHERE lifecycle <> 'destroyed';

-- which installation this database is of: the home of each worker and Redis must name the same, or the worker does not begin.
-- contract: what the newest release that migrated it writes for others to read, CONTRACT in domain/installation/contract.py
CREATE TABLE installation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    contract integer NOT NULL,
    made_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    is_only boolean DEFAULT true NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (is_only),
    CONSTRAINT installation_is_only_check CHECK (is_only)
);
INSERT INTO installation (contract) VALUES (1);

-- the machines that run replicas, and how long each has been silent
-- clock_offset_seconds: by how much its clock is ahead of this server's, at least; contract: as above, of its worker
CREATE TABLE hosts (
    name text NOT NULL,
    address text NOT NULL,
    last_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    silent_looks integer DEFAULT '0' NOT NULL,
    down_since timestamptz,
    registered_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    clock_offset_seconds double precision DEFAULT '0' NOT NULL,
    contract integer DEFAULT '1' NOT NULL,
    CONSTRAINT hosts_pkey PRIMARY KEY (name),
    CONSTRAINT hosts_silent_looks_check CHECK (silent_looks >= 0)
);

-- what each proxy has acknowledged, and when it was heard of
CREATE TABLE proxies (
    node_id text NOT NULL,
    kind text NOT NULL,
    silence_seconds double precision NOT NULL,
    is_doubled boolean DEFAULT false NOT NULL, -- two proxies use this id
    acked_version text,
    acked_snapshot pg_snapshot,
    acked_at timestamptz,
    first_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    last_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT proxies_pkey PRIMARY KEY (node_id),
    CONSTRAINT proxies_silence_seconds_check CHECK (silence_seconds > 0)
);

-- the servers of routes that a proxy could talk to
CREATE TABLE publishers (
    id text NOT NULL,
    seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT publishers_pkey PRIMARY KEY (id)
);

-- when the count should change by itself
CREATE TABLE autoscaling_rules (
    deployment_id uuid NOT NULL,
    position integer NOT NULL,
    metric text NOT NULL,
    source text NOT NULL,
    path text NOT NULL,
    labels jsonb NOT NULL,
    aggregate text NOT NULL,
    comparator text NOT NULL,
    threshold double precision NOT NULL,
    step integer NOT NULL,
    min_replicas integer NOT NULL,
    max_replicas integer NOT NULL,
    cooldown_seconds double precision NOT NULL,
    max_age_seconds double precision NOT NULL,
    series text NOT NULL,
    CONSTRAINT autoscaling_rules_pkey PRIMARY KEY (deployment_id, position),
    CONSTRAINT autoscaling_rules_source_check CHECK (source IN ('replicas', 'pushed')),
    CONSTRAINT autoscaling_rules_aggregate_check CHECK (aggregate IN ('avg', 'sum', 'max', 'min')),
    CONSTRAINT autoscaling_rules_comparator_check CHECK (comparator IN ('>', '>=', '<', '<=')),
    CONSTRAINT autoscaling_rules_threshold_check CHECK (threshold NOT IN ('NaN', 'Infinity', '-Infinity')),
    CONSTRAINT autoscaling_rules_step_check CHECK (step <> 0),
    CONSTRAINT autoscaling_rules_replicas_check CHECK (0 <= min_replicas AND min_replicas <= max_replicas),
    CONSTRAINT autoscaling_rules_seconds_check CHECK (cooldown_seconds >= 0 AND max_age_seconds > 0),
    CONSTRAINT autoscaling_rules_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id)
);

-- host names and path prefixes, each taken once
CREATE TABLE entrances (
    kind text NOT NULL,
    value text NOT NULL,
    deployment_id uuid NOT NULL,
    strip_prefix boolean DEFAULT 'true' NOT NULL,
    CONSTRAINT entrances_pkey PRIMARY KEY (kind, value),
    CONSTRAINT entrances_kind_check CHECK (kind IN ('host', 'prefix')),
    CONSTRAINT entrances_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id)
);
CREATE INDEX entrances_deployment_id_idx ON entrances (deployment_id);

-- the last values that the rules look at
CREATE TABLE metric_values (
    deployment_id uuid NOT NULL,
    series text NOT NULL,
    value double precision NOT NULL,
    missing integer DEFAULT '0' NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT metric_values_pkey PRIMARY KEY (deployment_id, series),
    CONSTRAINT metric_values_value_check CHECK (value NOT IN ('NaN', 'Infinity', '-Infinity')),
    CONSTRAINT metric_values_missing_check CHECK (missing >= 0),
    CONSTRAINT metric_values_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id)
);

-- strategy and limits for the rollouts that begin from now on
CREATE TABLE policies (
    deployment_id uuid NOT NULL,
    strategy text NOT NULL,
    spec jsonb NOT NULL,
    limits jsonb NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT policies_pkey PRIMARY KEY (deployment_id),
    CONSTRAINT policies_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id)
);

-- what to run; never changed
CREATE TABLE revisions (
    id uuid DEFAULT uuidv7() NOT NULL,
    deployment_id uuid NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT revisions_pkey PRIMARY KEY (id),
    CONSTRAINT revisions_deployment_id_name_key UNIQUE (deployment_id, name),
    CONSTRAINT revisions_id_deployment_id_key UNIQUE (id, deployment_id),
    CONSTRAINT revisions_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id)
);

-- a rollout with its own copy of the policy; at most one is open for each deployment
CREATE TABLE rollouts (
    id uuid DEFAULT uuidv7() NOT NULL,
    deployment_id uuid NOT NULL,
    from_revision_id uuid NOT NULL,
    to_revision_id uuid NOT NULL,
    strategy text NOT NULL,
    spec jsonb NOT NULL,
    limits jsonb NOT NULL,
    desired_at_start integer NOT NULL,
    desired_with_revision integer,
    ceiling integer NOT NULL,
    floor integer NOT NULL,
    count_stopping boolean DEFAULT false NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    started_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    last_progress_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    deadline timestamptz DEFAULT clock_timestamp() NOT NULL,
    clock_stopped_at timestamptz,
    promote_requested boolean DEFAULT 'false' NOT NULL,
    failed_routes integer DEFAULT '0' NOT NULL,
    steps integer DEFAULT '0' NOT NULL,
    back_reason text,
    outcome text,
    ended_at timestamptz,
    CONSTRAINT rollouts_pkey PRIMARY KEY (id),
    CONSTRAINT rollouts_from_revision_id_fkey FOREIGN KEY(from_revision_id, deployment_id) REFERENCES revisions (id, deployment_id),
    CONSTRAINT rollouts_to_revision_id_fkey FOREIGN KEY(to_revision_id, deployment_id) REFERENCES revisions (id, deployment_id),
    CONSTRAINT rollouts_goes_somewhere_check CHECK (from_revision_id <> to_revision_id),
    CONSTRAINT rollouts_budget_check CHECK (floor >= 0 AND floor <= ceiling),
    CONSTRAINT rollouts_outcome_check CHECK (outcome IN ('completed', 'rolled_back', 'superseded', 'destroyed')),
    CONSTRAINT rollouts_ended_has_outcome_check CHECK ((outcome IS NULL) = (ended_at IS NULL)),
    CONSTRAINT rollouts_ended_clock_runs_no_more_check CHECK (outcome IS NULL OR clock_stopped_at IS NULL),
    CONSTRAINT rollouts_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id)
);
CREATE INDEX rollouts_deployment_id_idx ON rollouts (deployment_id, started_at);
CREATE UNIQUE INDEX rollouts_one_open_key ON rollouts (deployment_id) WHERE ended_at IS NULL;

-- the timeline for people
CREATE TABLE deployment_history (
    id uuid DEFAULT uuidv7() NOT NULL,
    deployment_id uuid NOT NULL,
    rollout_id uuid,
    phase text NOT NULL,
    result text NOT NULL,
    error_code text,
    target text NOT NULL,
    actor text NOT NULL,
    message text NOT NULL,
    attempts integer DEFAULT '1' NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT deployment_history_pkey PRIMARY KEY (id),
    CONSTRAINT deployment_history_attempts_check CHECK (attempts > 0),
    CONSTRAINT deployment_history_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id),
    CONSTRAINT deployment_history_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id)
);
CREATE INDEX deployment_history_deployment_id_idx ON deployment_history (deployment_id, updated_at);

-- what each changing cycle saw and decided, so that it can be decided again
CREATE TABLE rollout_steps (
    rollout_id uuid NOT NULL,
    step_no integer NOT NULL,
    phase text NOT NULL,
    at timestamptz NOT NULL,
    verdict text NOT NULL,
    inputs jsonb NOT NULL,
    decision jsonb NOT NULL,
    CONSTRAINT rollout_steps_pkey PRIMARY KEY (rollout_id, step_no),
    CONSTRAINT rollout_steps_verdict_check CHECK (verdict IN ('success', 'need_retry', 'skipped', 'error', 'expired', 'give_up')),
    CONSTRAINT rollout_steps_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id)
);

-- a replica: its health, its traffic, its way out
CREATE TABLE routes (
    id uuid DEFAULT uuidv7() NOT NULL,
    deployment_id uuid NOT NULL,
    revision_id uuid NOT NULL,
    rollout_id uuid,
    status text DEFAULT 'provisioning' NOT NULL,
    status_changed_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    traffic_status text NOT NULL,
    traffic_ratio double precision DEFAULT '1' NOT NULL,
    address text,
    replica_handle text,
    start_tries integer DEFAULT '0' NOT NULL, -- in a row that its runtime did not answer
    next_start_at timestamptz, -- the next try; none: at once
    started_at timestamptz,
    probe_streak integer DEFAULT '0' NOT NULL,
    status_reason text DEFAULT '' NOT NULL,
    log_tail text,
    parked_until timestamptz,
    host text,
    drain_started_at timestamptz,
    drain_xid xid8,
    out_of_traffic_at timestamptz,
    stop_requested_at timestamptz,
    stopped_at timestamptz,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT routes_pkey PRIMARY KEY (id),
    CONSTRAINT routes_revision_id_fkey FOREIGN KEY(revision_id, deployment_id) REFERENCES revisions (id, deployment_id),
    CONSTRAINT routes_status_check CHECK (status IN ('provisioning', 'healthy', 'unhealthy', 'degraded', 'terminating', 'terminated', 'failed')),
    CONSTRAINT routes_traffic_status_check CHECK (traffic_status IN ('active', 'inactive')),
    CONSTRAINT routes_traffic_ratio_check CHECK (traffic_ratio BETWEEN 0 AND 1),
    CONSTRAINT routes_gone_has_no_traffic_check CHECK (status NOT IN ('terminating', 'terminated', 'failed') OR traffic_status = 'inactive'),
    CONSTRAINT routes_terminating_drains_check CHECK (status <> 'terminating' OR drain_started_at IS NOT NULL),
    CONSTRAINT routes_running_was_started_check CHECK (status NOT IN ('healthy', 'unhealthy', 'degraded') OR started_at IS NOT NULL),
    CONSTRAINT routes_terminated_was_stopped_check CHECK (status <> 'terminated' OR stopped_at IS NOT NULL),
    CONSTRAINT routes_failed_says_why_check CHECK (status <> 'failed' OR status_reason <> ''),
    CONSTRAINT routes_parked_is_out_of_traffic_check CHECK (parked_until IS NULL OR traffic_status = 'inactive'),
    CONSTRAINT routes_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments (id),
    CONSTRAINT routes_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id)
);
CREATE INDEX routes_deployment_id_idx ON routes (deployment_id, created_at);
CREATE INDEX routes_draining_idx ON routes (drain_started_at) WHERE status = 'terminating' AND out_of_traffic_at IS NULL;
CREATE INDEX routes_host_idx ON routes (host) WHERE stopped_at IS NULL;
CREATE INDEX routes_live_idx ON routes (deployment_id) WHERE status NOT IN ('terminated', 'failed');
CREATE INDEX routes_published_idx ON routes (deployment_id) WHERE status IN ('healthy', 'unhealthy', 'degraded');
CREATE INDEX routes_unstopped_idx ON routes (status) WHERE stopped_at IS NULL;

ALTER TABLE deployments ADD CONSTRAINT deployments_deploying_revision_id_fkey FOREIGN KEY(deploying_revision_id, id) REFERENCES revisions (id, deployment_id);
ALTER TABLE deployments ADD CONSTRAINT deployments_current_revision_id_fkey FOREIGN KEY(current_revision_id, id) REFERENCES revisions (id, deployment_id);
ALTER TABLE deployments ADD CONSTRAINT deployments_rollout_id_fkey FOREIGN KEY(rollout_id) REFERENCES rollouts (id);

-- The budgets: triggers that refuse what our own decisions must never do, whoever asks for it.
--
-- RW001  a statement creates live routes, and leaves more of them than the ceiling
-- RW002  a statement takes healthy serving routes out of traffic, and leaves fewer of them than the floor
--
--                     ceiling                    floor
--     in a rollout    rollouts.ceiling           rollouts.floor
--     otherwise       desired + 1                desired
--     being destroyed 0, nothing is created      none, everything is drained
--
-- The ceiling counts live routes that are not parked; where count_stopping is true, of the rollout or otherwise of the
-- deployment, it counts those that are stopping too.
--
-- Judged is what a statement does, not what it finds: replicas that fall ill are never refused, nor is draining those
-- that do not serve. Each trigger looks once at all rows of its statement, and sees the deployment as it stands then:
-- routes are written before their deployment changes its state, promotions before drains. Whoever changes routes holds
-- the lock of the deployment, so nothing is locked here.

CREATE FUNCTION routes_within_ceiling() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT DISTINCT deployment_id FROM created
         WHERE status NOT IN ('terminating', 'terminated', 'failed') AND parked_until IS NULL);
    broken record;
BEGIN
    SELECT d.name, d.lifecycle, count(*) AS counted, b.ceiling,
           CASE WHEN b.count_stopping THEN 'live or stopping' ELSE 'live' END AS which INTO broken
      FROM deployments d
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     CROSS JOIN LATERAL (SELECT CASE WHEN d.lifecycle IN ('destroying', 'destroyed') THEN 0
                                     ELSE coalesce(o.ceiling, d.desired_replicas + 1) END AS ceiling,
                                coalesce(o.count_stopping, d.count_stopping) AS count_stopping) b
      JOIN routes r ON r.deployment_id = d.id AND r.status NOT IN ('terminated', 'failed')
       AND CASE r.status WHEN 'terminating' THEN b.count_stopping ELSE r.parked_until IS NULL END
     WHERE d.id = ANY(ids)
     GROUP BY d.id, b.ceiling, b.count_stopping
    HAVING count(*) > b.ceiling
     ORDER BY d.name
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            MESSAGE = concat(broken.name, ': ', broken.counted, ' ', broken.which, ' replicas are more than the ',
                             broken.ceiling, ' allowed while ', broken.lifecycle),
            ERRCODE = 'RW001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER routes_within_ceiling AFTER INSERT ON routes REFERENCING NEW TABLE AS created
    FOR EACH STATEMENT EXECUTE FUNCTION routes_within_ceiling();

CREATE FUNCTION routes_above_floor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT DISTINCT deployment_id
          FROM (SELECT id, deployment_id FROM was WHERE status = 'healthy' AND traffic_status = 'active'
                UNION ALL -- and no join, which would be planned for one row and compare each row with each
                SELECT id, deployment_id FROM became
                 WHERE status IN ('terminating', 'terminated')
                    OR (traffic_status = 'inactive' AND status <> 'failed')) served
         GROUP BY id, deployment_id
        HAVING count(*) = 2);
    broken record;
BEGIN
    SELECT d.name, d.lifecycle, count(r.id) AS serving, b.floor INTO broken
      FROM deployments d
      LEFT JOIN routes r ON r.deployment_id = d.id AND r.status = 'healthy' AND r.traffic_status = 'active'
      LEFT JOIN rollouts o ON o.id = d.rollout_id,
           LATERAL (SELECT coalesce(o.floor, d.desired_replicas) AS floor) b
     WHERE d.id = ANY(ids) AND d.lifecycle NOT IN ('destroying', 'destroyed')
     GROUP BY d.id, b.floor
    HAVING count(r.id) < b.floor
     ORDER BY d.name
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            MESSAGE = concat(broken.name, ': ', broken.serving, ' healthy replicas in traffic are fewer than the ',
                             broken.floor, ' to keep while ', broken.lifecycle),
            ERRCODE = 'RW002', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER routes_above_floor AFTER UPDATE ON routes REFERENCING OLD TABLE AS was NEW TABLE AS became
    FOR EACH STATEMENT EXECUTE FUNCTION routes_above_floor();
