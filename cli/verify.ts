/** `sluice verify`: proves that a deployment limits. */
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseDuration } from '../src/core/base/duration.ts'
import { parseConfig } from '../src/core/config/parse.ts'
import { defaultFields } from '../src/features/defaults.ts'
import { staleness } from './build.ts'
import type { Call } from './call.ts'
import { readArguments } from './options.ts'
import { say } from './paint.ts'
import { hostOf } from './project/hosts.ts'
import { CONFIG_FILE, placed } from './project/load-config.ts'
import { wranglerFor } from './project/root.ts'
import { routesIn } from './project/wrangler-config.ts'
import { toJson, toJunit, toText } from './verify/print.ts'
import { verifyDeployment } from './verify/run.ts'
import type { KnownRoute } from './verify/sample.ts'

const usage = (
  title: string,
) => `Proves that a deployment limits: sends requests to each policy until it refuses
them, and checks the wait, other spellings of the path, the configuration, the
database, the clocks and the address of the client. The requests have counters
of their own, and Sluice answers them itself. A request that the deployment does
not cover reaches the app, which is what this command finds: at most one for
each policy and route. The deployment needs the feature verify() and the
variable SLUICE_VERIFY_TOKEN.

  ${title} URL [options]

  --token TOKEN    a token of the deployment's SLUICE_VERIFY_TOKEN (default the
                   variable of this name, which other users of this machine do
                   not see)
  --header TEXT    a header field of every request, as 'name: value'; repeatable
  --origin URL     the app itself, which must not answer without Sluice
  --path ROUTE     a route of the app, such as /api/things or 'POST /orders',
                   which must be behind the limiter; repeatable. Without one, a
                   policy for many paths is checked at a path that is made up
  --policy NAME    check only this policy; repeatable
  --through        send admitted requests on to the app
  --wait DURATION  wait for a refused quota at most this long (default 10s)
  --config FILE    the configuration (default ${CONFIG_FILE})
  --json           print JSON
  --junit FILE     also write the results for a CI server
  --help           show this text

Exits with 0 if there is no problem, and with 1 otherwise.`

export async function main(args: string[], call: Call): Promise<void> {
  const text = { type: 'string' } as const
  const texts = { type: 'string', multiple: true } as const
  const read = readArguments(
    args,
    {
      token: text,
      header: texts,
      origin: text,
      path: texts,
      policy: texts,
      through: { type: 'boolean' },
      wait: { type: 'string', default: '10s' },
      config: { type: 'string', default: CONFIG_FILE },
      json: { type: 'boolean' },
      junit: text,
    } as const,
    usage(call.title),
    call,
  )
  if (!read) return
  const { values, positionals } = read
  const { policy: only, through = false } = values
  const origin = values.origin && addressOf(values.origin)
  const token = values.token ?? process.env.SLUICE_VERIFY_TOKEN?.split(/[\s,]+/)[0]
  const headers = headersOf(values.header ?? [])
  const maxWaitMs = parseDuration(values.wait)
  const url = positionals[0] && addressOf(positionals[0])
  const paths = (values.path ?? []).map(routeIn)
  const unread = paths.indexOf(undefined)
  const mistake =
    mistakeIn(url, positionals.length, origin, token) ??
    (unread < 0
      ? undefined
      : `--path: expected a path like /api/things, or 'POST /orders', got ${JSON.stringify(values.path![unread])}`) ??
    (typeof headers === 'string' ? headers : undefined) ??
    (maxWaitMs === undefined
      ? `--wait: expected a duration like "30s", got ${JSON.stringify(values.wait)}`
      : undefined)
  if (mistake) return call.onUsageError(mistake)
  const host = await hostOf(values.config)
  const config = await host
    .load()
    .then((options) => parseConfig(options as object, defaultFields))
    .catch((error) => {
      throw new Error(placed(values.config, error))
    })
  const names = config.policies.map(({ name }) => name)
  const wrong = only?.find((name) => !names.includes(name))
  if (wrong !== undefined) {
    return call.onUsageError(
      `--policy: expected one of ${names.join(', ')}, got ${JSON.stringify(wrong)}`,
    )
  }
  const stale = await staleness(values.config, host)
  if (stale) throw new Error(stale)
  const findings = await verifyDeployment({
    url: url!,
    token: token!,
    config,
    headers: headers as Record<string, string>,
    origin,
    through,
    paths: paths as KnownRoute[],
    maxWaitMs: maxWaitMs!,
    only,
    env: process.env,
    routes: await routesIn(wranglerFor(resolve(values.config))),
  })
  if (values.json) console.log(toJson(url!, findings))
  else say(toText(findings))
  if (values.junit) await writeFile(values.junit, `${toJunit(url!, findings)}\n`)
  if (findings.some(({ status }) => status === 'problem')) process.exitCode = 1
}

function mistakeIn(
  url: string | undefined,
  count: number,
  origin: string | undefined,
  token: string | undefined,
): string | undefined {
  if (url === undefined)
    return 'URL: expected the address of the deployment, such as https://www.example.com'
  if (count > 1) return `URL: expected one address, got ${count}`
  if (!isWeb(url))
    return `URL: expected an address that begins with https://, got ${JSON.stringify(url)}`
  const { search, hash, username } = new URL(url)
  if (username) {
    return "URL: expected an address without a user. Write --header 'Authorization: Basic …'"
  }
  if (search || hash) return `URL: expected an address without a query, got ${JSON.stringify(url)}`
  if (origin !== undefined && !isWeb(origin)) {
    return `--origin: expected an address that begins with https://, got ${JSON.stringify(origin)}`
  }
  if (!token) return '--token: expected a token. Or set the variable SLUICE_VERIFY_TOKEN'
  if (token.length < 16) return '--token: expected at least 16 characters'
  return undefined
}

/** Completes an address without a protocol: of this machine or of a number with `http`. */
function addressOf(text: string): string {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(text) || !/^[\w[]/.test(text)) return text
  const isPlain = /^(localhost|[^/]*\.localhost|[\d.]+|\[[^\]]*\])(:\d+)?(\/|$)/i.test(text)
  return `${isPlain ? 'http' : 'https'}://${text}`
}

/** Reads `/api/things`, or `POST /orders`. */
function routeIn(text: string): KnownRoute | undefined {
  const [, method, path] = /^(?:([A-Za-z]+) )?(\/[^\s#]*)$/.exec(text) ?? []
  return path === undefined ? undefined : { method: method?.toUpperCase(), path }
}

const isWeb = (text: string) => /^https?:\/\//.test(text) && URL.canParse(text)

/** Reads `name: value`. Returns a mistake. */
function headersOf(fields: string[]): Record<string, string> | string {
  const headers: Record<string, string> = {}
  for (const field of fields) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(field) ?? []
    if (name === undefined) return `--header: expected 'name: value', got ${JSON.stringify(field)}`
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value!)) {
      return `--header: expected a value of Latin-1 characters, got ${JSON.stringify(field)}`
    }
    headers[name] = value!
  }
  return headers
}
