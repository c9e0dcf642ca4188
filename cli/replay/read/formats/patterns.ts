/**
 * The formats of servers and clouds that a pattern describes, by their names for `--format`. A new one needs a line here. Names that no
 * field of a request has are only there to be skipped. A server that writes quotes as a client has sent them is `raw`.
 */
export const patterns = {
  // https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
  alb: [
    'AWS Application Load Balancer',
    '$type $logged $elb $client_ip:$client_port $target_server $wait $process $send $status $target_status $received $sent "$request" "$user_agent" $cipher $protocol $group "$trace" "$domain_name" "$certificate" $priority $request_creation_time "',
  ],
  // https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html
  elb: [
    'AWS Classic Load Balancer',
    '$time $elb $client_ip:$client_port $backend $wait $process $send $status $backend_status $received $sent "$request" "$user_agent" ',
  ],
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
  s3: [
    'Amazon S3',
    '$owner $bucket [$time] $remote_ip $requester $id $operation $key "$request" $status $error $sent $size $total $turnaround "$referer" "$user_agent" ',
  ],
  // https://docs.haproxy.org/3.0/configuration.html#8.2.3, with captured headers before the request
  haproxy: [
    'HAProxy',
    '$client_ip:$client_port [$time] $frontend $backend $timers $status $bytes $request_cookie $response_cookie $state $connections $queues "$request"',
  ],
  // https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format
  istio: [
    'Istio',
    '[$start_time] "$request" $status $flags $details $end "$failure" $received $sent $duration $service_time "$x_forwarded_for" "$user_agent" "$id" "$authority" "$upstream" $cluster $upstream_local $downstream_local $downstream_remote_address ',
    'raw',
  ],
  // https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
  envoy: [
    'Envoy',
    '[$start_time] "$request" $status $flags $received $sent $duration $service_time "$x_forwarded_for" "$user_agent" "$id" "$authority" "',
    'raw',
  ],
  // https://github.com/NginxProxyManager/nginx-proxy-manager/blob/develop/docker/rootfs/etc/nginx/conf.d/include/log-proxy.conf
  npm: [
    'Nginx Proxy Manager',
    '[$time_local] $cache $upstream_status $status - $request_method $scheme $host "$request_uri" [Client $remote_addr] [Length $length] [Gzip $gzip] [Sent-to $server] "$http_user_agent" "$http_referer"',
  ],
  'npm-standard': [
    'Nginx Proxy Manager (standard)',
    '[$time_local] $status - $request_method $scheme $host "$request_uri" [Client $remote_addr] [Length $length] [Gzip $gzip] "$http_user_agent" "$http_referer"',
  ],
} satisfies Record<string, [title: string, pattern: string, raw?: 'raw']>
