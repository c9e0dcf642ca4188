import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type BridgeOptions, MAX_REPLY } from './bridge.ts'
import { isLoopback } from './origin.ts'
import { readTokens, type Token } from './tokens.ts'

export const usage = (command: string) => `Serves the Upstash REST API from any Redis.

  ${command} [options]

Redis
  --redis URL        one Redis, such as redis://127.0.0.1:6379. Without this
                     option the bridge starts its own Redis. For several
                     databases repeat --redis URL=TOKEN
  --cluster NODES    a Redis Cluster: host:port of one or more of its nodes,
                     separated by commas. For credentials or TLS write
                     rediss://user:password@host:port,host:port
  --sentinel NAME@SENTINELS
                     the master NAME that the sentinels watch:
                     NAME@host:port,host:port, or
                     NAME@rediss://user:password@host:port,host:port
  --redis-ca FILE    certificate authorities of Redis in PEM, for rediss:

Server
  --port N           the port to listen on; 0 selects a free port (default 8079)
  --host ADDRESS     the address to listen on (default 127.0.0.1)
  --allow-host NAME  also accept requests to this host name, such as
                     host.docker.internal; repeatable. Loopback names are always
                     accepted
  --tls-cert FILE, --tls-key FILE
                     serve HTTPS with this certificate chain and key, both in
                     PEM
  --log              print a line of JSON for each request, without keys and
                     arguments

Tokens
  --token TEXT       a token that clients may send; repeatable (default dev)
  --read-only-token TEXT
                     a token that may only read; repeatable
  --token-file FILE  a token on each line, followed by "read-only" if it may
                     only read
  --read-only-scripts
                     a read-only token may run EVAL_RO, EVALSHA_RO and FCALL_RO,
                     which can keep Redis busy

Limits
  --max-running N    requests that use Redis at the same time; further ones wait
                     (default 1000)
  --max-waiting N    requests that wait; beyond it the status is 429 (default
                     5000)
  --max-body BYTES   size of a request body (default 10485760)
  --max-pipeline N   commands in a pipeline or transaction (default no limit)
  --max-reply BYTES  size of a response (default 16777216)
  --timeout MS       deadline of a request, also for a failover (default 10000)
  --pipeline-timeout MS
                     on a cluster, answer a pipeline after this time: a command
                     whose node has not responded gets an error (default: as
                     --timeout)
  --grace MS         time for requests in flight after SIGTERM (default 3000)

Development
  --rtt MS           latency added to each request, to simulate a distant
                     database (default 0)
  --max-commands N   throttle each database to N commands a second, including
                     the commands inside scripts; further commands wait. An
                     Upstash plan allows 10,000
  --no-check-keys    run scripts unchanged: undeclared keys are not refused, and
                     commands inside scripts are not counted
  --help             show this text`

export type CliOptions = BridgeOptions & {
  redis: { url: string; token: string }[]
  /** Print a line for each request. */
  logs: boolean
}

/** An invalid command line. */
export class UsageError extends Error {}

/** Parses the command line. @throws UsageError */
export function parseCli(args: string[]): CliOptions | 'help' {
  const values = read(args)
  if (values.help) return 'help'
  const number = (flag: keyof typeof values, preset: string, max: number) =>
    wholeNumber(`--${flag}`, String(values[flag] ?? preset), max)
  const atLeast1 = (flag: keyof typeof values, max: number) =>
    maxOf(`--${flag}`, values[flag] as string | undefined, max)
  const allowHosts = values['allow-host'] ?? []
  for (const name of allowHosts) {
    if (/^([\w.-]+|\[[\da-f:.]+\])$/i.test(name)) continue
    const expected = 'a host name without scheme and port, such as "host.docker.internal"'
    throw new UsageError(`--allow-host: expected ${expected}, got "${name}"`)
  }
  const tokens = tokensOf(values)
  const [{ token }] = tokens
  const host = values.host ?? '127.0.0.1'
  const isGiven = values.token ?? values['read-only-token'] ?? values['token-file']
  if (!isLoopback(host) && !isGiven) {
    throw new UsageError('--host: expected --token or --token-file, too')
  }
  return {
    ...targetsOf(values, tokens),
    redisCa: fileOf('--redis-ca', values['redis-ca']),
    port: number('port', '8079', 65_535),
    host,
    token,
    tokens,
    readOnlyScripts: values['read-only-scripts'] ?? false,
    allowHosts,
    tls: tlsOf(values),
    logs: values.log ?? false,
    maxRunning: atLeast1('max-running', 999_999) ?? 1000,
    maxWaiting: number('max-waiting', '5000', 999_999),
    maxBody: atLeast1('max-body', 999_999_999) ?? 10 * 1024 * 1024,
    maxPipeline: atLeast1('max-pipeline', 999_999_999) ?? Infinity,
    maxReply: atLeast1('max-reply', 999_999_999) ?? MAX_REPLY,
    timeout: atLeast1('timeout', 600_000) ?? 10_000,
    pipelineTimeout: atLeast1('pipeline-timeout', 600_000),
    grace: number('grace', '3000', 600_000),
    rtt: number('rtt', '0', 60_000),
    checkKeys: !values['no-check-keys'],
    maxCommands: atLeast1('max-commands', 999_999),
  }
}

function read(args: string[]) {
  const text = { type: 'string' } as const
  const texts = { type: 'string', multiple: true } as const
  const flag = { type: 'boolean' } as const
  try {
    return parseArgs({
      args,
      options: {
        redis: texts,
        cluster: text,
        sentinel: text,
        'redis-ca': text,
        port: text,
        host: text,
        'allow-host': texts,
        'tls-cert': text,
        'tls-key': text,
        log: flag,
        token: texts,
        'read-only-token': texts,
        'token-file': text,
        'read-only-scripts': flag,
        'max-running': text,
        'max-waiting': text,
        'max-body': text,
        'max-pipeline': text,
        'max-reply': text,
        timeout: text,
        'pipeline-timeout': text,
        grace: text,
        rtt: text,
        'max-commands': text,
        'no-check-keys': flag,
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

type Values = ReturnType<typeof read>

/** The tokens of the command line and of the file, in this order. */
function tokensOf(values: Values): [Token, ...Token[]] {
  const writing = (values.token ?? []).map((token) => ({ token }))
  const reading = (values['read-only-token'] ?? []).map((token) => ({ token, readOnly: true }))
  if (writing.some(({ token }) => !/^\S+$/.test(token))) {
    throw new UsageError('--token: expected text without spaces')
  }
  if (reading.some(({ token }) => !/^\S+$/.test(token))) {
    throw new UsageError('--read-only-token: expected text without spaces')
  }
  let listed: Token[] = []
  const file = values['token-file']
  if (file !== undefined) {
    try {
      listed = readTokens(String(fileOf('--token-file', file)))
    } catch (error) {
      if (error instanceof UsageError) throw error
      throw new UsageError(`--token-file ${file}: ${(error as Error).message}`)
    }
  }
  const [first = { token: 'dev' }, ...others] = [...writing, ...reading, ...listed]
  return [first, ...others]
}

/** Where Redis is. Without any option `redis` is empty. */
function targetsOf(values: Values, tokens: Token[]) {
  const given = ['redis', 'cluster', 'sentinel'].filter((name) => name in values)
  if (given.length > 1) {
    throw new UsageError(`--${given[1]}: expected only one of --redis, --cluster and --sentinel`)
  }
  const redis = (values.redis ?? []).map((text) => target(text, tokens[0]!.token))
  const own = new Set(redis.map(({ token }) => token))
  if (own.size < redis.length) {
    throw new UsageError('--redis: each of several databases needs its own token; write URL=TOKEN')
  }
  if (
    tokens.length > 1 &&
    (redis.length > 1 || redis.some(({ token }) => token !== tokens[0]?.token))
  ) {
    throw new UsageError('--redis URL=TOKEN: expected no other tokens')
  }
  const { cluster, sentinel } = values
  if (cluster !== undefined) return { redis, cluster: urlsOf('--cluster', 'host:port', cluster) }
  if (sentinel === undefined) return { redis }
  const [, name, nodes] = /^([\w.:-]+?)@(.+)$/.exec(sentinel) ?? []
  if (!name || !nodes) {
    throw new UsageError(`--sentinel: expected name@host:port, got "${sentinel}"`)
  }
  return { redis, sentinel: { name, urls: urlsOf('--sentinel', 'name@host:port', nodes) } }
}

/** `redis://host:port` of each node. The scheme and the credentials of the first node apply to all. */
function urlsOf(flag: string, expected: string, text: string): string[] {
  const [, prefix = '', list = ''] = /^(rediss?:\/\/(?:[^@/]*@)?)?(.*)$/s.exec(text) ?? []
  return list.split(',').map((node) => {
    if (/^([\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i.test(node)) return `${prefix || 'redis://'}${node}`
    throw new UsageError(`${flag}: expected ${expected}, got "${node}"`)
  })
}

function target(text: string, token: string): { url: string; token: string } {
  const [, url = text, own = token] = /^([^=]*)=(.+)$/.exec(text) ?? []
  if (!/^(rediss?:\/\/[^/]|unix:\/)/.test(url) || !URL.canParse(url)) {
    throw new UsageError(`--redis: expected redis://host:port, got "${text}"`)
  }
  return { url, token: own }
}

function tlsOf(values: Values): BridgeOptions['tls'] {
  const cert = fileOf('--tls-cert', values['tls-cert'])
  const key = fileOf('--tls-key', values['tls-key'])
  if (cert && key) return { cert, key }
  if (cert || key) throw new UsageError('--tls-cert: expected --tls-key, too, and the reverse')
}

function fileOf(flag: string, file: string | undefined): Buffer | undefined {
  if (file === undefined) return
  try {
    return readFileSync(file)
  } catch (error) {
    throw new UsageError(`${flag}: ${(error as Error).message}`)
  }
}

function wholeNumber(flag: string, text: string, max: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= max) return Number(text)
  throw new UsageError(`${flag}: expected a whole number from 0 to ${max}, got "${text}"`)
}

function maxOf(flag: string, text: string | undefined, max: number): number | undefined {
  if (text === undefined) return
  if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= max) return Number(text)
  throw new UsageError(`${flag}: expected a whole number from 1 to ${max}, got "${text}"`)
}
