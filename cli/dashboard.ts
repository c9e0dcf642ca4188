/** `sluice dashboard`: shows live what a deployed Worker admits and refuses. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Call } from './call.ts'
import { findingsOf } from './check/policies.ts'
import type { About } from './dashboard/about.ts'
import { analyticsReader } from './dashboard/analytics.ts'
import { DASHBOARD_PORT, startDashboard } from './dashboard/server.ts'
import { readOptions } from './options.ts'
import { hostOf } from './project/hosts.ts'
import { CONFIG_FILE } from './project/load-config.ts'
import { wranglerFor } from './project/root.ts'

const usage = (
  title: string,
) => `Shows live, on a web page of this machine, what a Worker admits and refuses. A
local server forwards the calls of the page to the Worker, with the token of an
operator. The Worker needs the option observe, and the variable
SLUICE_OPERATE_TOKEN. Ctrl-C stops it.

  ${title} --url URL [options]

  --url URL      the Worker, such as https://www.example.com
  --token TOKEN  a token of the Worker's SLUICE_OPERATE_TOKEN (default the
                 variable SLUICE_OPERATE_TOKEN, which other users of this
                 machine do not see)
  --port N       the port of the page; 0 selects a free port (default ${DASHBOARD_PORT})
  --config FILE  the configuration whose findings the page shows (default
                 ${CONFIG_FILE}, if it exists)
  --help         show this text

With the variables CLOUDFLARE_ACCOUNT_ID, CLOUDFLARE_API_TOKEN and
SLUICE_ANALYTICS_DATASET the page shows the counts of all isolates, from the
Workers Analytics Engine.

Exits with 0 after Ctrl-C, and with 1 if it cannot start.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    {
      url: { type: 'string' },
      token: { type: 'string' },
      port: { type: 'string', default: String(DASHBOARD_PORT) },
      config: { type: 'string' },
    },
    usage(call.title),
    call,
  )
  if (!options) return
  const {
    url,
    port,
    config,
    token = process.env.SLUICE_OPERATE_TOKEN?.split(/[\s,]+/)[0],
  } = options
  const mistake = mistakeIn(url, token, port)
  if (mistake) return call.onUsageError(mistake)
  const findings = await readFindings(config)
  const { origin } = new URL(url!)
  const dashboard = await startDashboard({
    url: origin,
    token: () => token!,
    port: Number(port),
    findings: () => findings,
    analytics: analyticsReader(process.env, (text) => console.error(text)),
  }).catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error
    throw new Error(`Port ${port} is in use. Choose another one: --port ${Number(port) + 1}`)
  })
  console.log(`The dashboard of ${origin} is at ${dashboard.address}\nCtrl-C stops it.`)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => dashboard.close().then(() => process.exit(0)))
  }
}

function mistakeIn(url: string | undefined, token: string | undefined, port: string) {
  if (url === undefined) return '--url: expected the address of the Worker'
  const { protocol, hostname, pathname, search } = URL.canParse(url)
    ? new URL(url)
    : { protocol: '', hostname: '', pathname: '', search: '' }
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLocal)) {
    const expected = 'an address that begins with https://, or with http:// on this machine'
    return `--url: expected ${expected}, got ${JSON.stringify(url)}`
  }
  if (pathname !== '/' || search) {
    return `--url: expected an address without a path, got ${JSON.stringify(url)}`
  }
  if (!token) return '--token: expected a token. Or set the variable SLUICE_OPERATE_TOKEN'
  if (!/^[\x21-\x7e]+$/.test(token)) return '--token: expected visible ASCII characters'
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    return `--port: expected a whole number from 0 to 65535, got ${JSON.stringify(port)}`
  }
  return undefined
}

async function readFindings(config: string | undefined): Promise<About['findings']> {
  const file = config ?? CONFIG_FILE
  if (config === undefined && !existsSync(file)) return undefined
  try {
    return { file, list: await findingsOf(file, wranglerFor(resolve(file)), await hostOf(file)) }
  } catch (error) {
    if (config !== undefined) throw error
    // The Worker may be that of another project.
    console.error(`The page shows no findings: ${(error as Error).message}`)
    return undefined
  }
}
