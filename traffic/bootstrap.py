"""The bootstrap of an Envoy that serves Rollway's deployments, as YAML with its reasons."""

import json
from string import Template

from traffic.envoy import POLL_TIMEOUT, REFRESH_DELAY, XDS_CLUSTER
from traffic.envoy_routes import ROUTE_CONFIGURATION


def envoy_bootstrap(*, node_id: str, listen: tuple[str, int], admin: tuple[str, int], xds: tuple[str, int]) -> str:
    """The YAML for `envoy --config-path`. Addresses are (IP address or, for `xds`, host name; port).

    `node_id` names this proxy: two proxies with one id could not be told apart, and a drain might miss one of them.
    """
    return Template(_YAML).substitute(
        node_id=json.dumps(node_id),
        listen_host=json.dumps(listen[0]),
        listen_port=listen[1],
        admin_host=json.dumps(admin[0]),
        admin_port=admin[1],
        xds_host=json.dumps(xds[0]),
        xds_port=xds[1],
        xds_cluster=XDS_CLUSTER,
        route_configuration=ROUTE_CONFIGURATION,
        refresh_delay=REFRESH_DELAY,
        poll_timeout=POLL_TIMEOUT,
        types="type.googleapis.com/envoy.extensions",
    )


_YAML = """\
# Envoy for Rollway, for Envoy 1.37 and newer. Start it with: envoy --config-path <this file>

# Each proxy needs an id of its own: a replica is stopped only when every live proxy has acknowledged that it left.
node: { id: $node_id, cluster: rollway }

# No one but the operator should reach this port: it can stop the proxy.
admin:
  address: { socket_address: { address: $admin_host, port_value: $admin_port } }

dynamic_resources:
  # Which deployments there are. The answer to a poll is held for up to 20 s, until something changes; the next poll,
  # which follows within 40 ms, acknowledges what was answered.
  cds_config:
    resource_api_version: V3
    api_config_source: &polled
      api_type: REST
      transport_api_version: V3
      cluster_names: [$xds_cluster]
      refresh_delay: $refresh_delay
      request_timeout: $poll_timeout

static_resources:
  clusters:
    # Rollway's xDS server. While it is away Envoy goes on with what it knows.
    - name: $xds_cluster
      type: STRICT_DNS
      connect_timeout: 1s
      load_assignment:
        cluster_name: $xds_cluster
        endpoints:
          - lb_endpoints:
              - endpoint: { address: { socket_address: { address: $xds_host, port_value: $xds_port } } }
      # each deployment's endpoints are a held poll, and so a connection, of their own
      circuit_breakers:
        thresholds:
          - { max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, max_retries: 100000 }
      # polls of a server that is away are tried again here, after a pause that grows to a second: by itself Envoy would
      # ask again every 40 ms for each deployment, and write a line about it each time
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": $types.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: { http_protocol_options: {} }
          retry_policy:
            retry_on: connect-failure,refused-stream,reset,5xx
            num_retries: 1000
            retry_back_off: { base_interval: 0.25s, max_interval: 1s }
      # a server that vanished without a word is noticed before a poll times out
      upstream_connection_options:
        tcp_keepalive: { keepalive_probes: 3, keepalive_time: 5, keepalive_interval: 2 }

  listeners:
    - name: rollway
      address: { socket_address: { address: $listen_host, port_value: $listen_port } }
      # what one slow client may make this proxy hold
      per_connection_buffer_limit_bytes: 1048576
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": $types.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: rollway
                codec_type: AUTO
                # where requests go: one table of hosts and path prefixes, with retries and time limits in each route
                rds:
                  route_config_name: $route_configuration
                  config_source:
                    resource_api_version: V3
                    api_config_source: *polled
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": $types.filters.http.router.v3.Router
                # this is the first proxy: it says in x-forwarded-for who asked, and believes no client about that
                use_remote_address: true
                # /a/../b is /b before anyone decides by it
                normalize_path: true
                path_with_escaped_slashes_action: KEEP_UNCHANGED
                # a head must arrive within 10 s; an upload may take as long as it moves every 300 s, so that there is
                # no request_timeout
                request_headers_timeout: 10s
                stream_idle_timeout: 300s
                # requests under way when this proxy is asked to end get this long
                drain_timeout: 5s
                upgrade_configs: [{ upgrade_type: websocket }]
                # one line for each answer of 500 or more
                access_log:
                  - name: envoy.access_loggers.stdout
                    filter:
                      status_code_filter:
                        comparison: { op: GE, value: { default_value: 500, runtime_key: rollway.logged_status } }
                    typed_config:
                      "@type": $types.access_loggers.stream.v3.StdoutAccessLog
                      log_format:
                        text_format_source:
                          inline_string: "%START_TIME% %REQ(:METHOD)% %REQ(:AUTHORITY)% \\
                            %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% \\
                            %RESPONSE_CODE_DETAILS% %UPSTREAM_CLUSTER% %UPSTREAM_HOST% \\
                            attempts=%UPSTREAM_REQUEST_ATTEMPT_COUNT% %DURATION%ms\\n"

# More clients than this are refused rather than taken into memory.
overload_manager:
  resource_monitors:
    - name: envoy.resource_monitors.global_downstream_max_connections
      typed_config:
        "@type": $types.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig
        max_active_downstream_connections: 50000
"""
