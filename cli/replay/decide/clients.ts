/** The address by which the deployed limiter counts the client of a line. */
import { formatAddress, inNetworks, parseAddress } from '../../../src/core/base/ip.ts'
import type { Config } from '../../../src/core/config/parse.ts'
import { featuresOf, stagesOf } from '../../../src/core/feature.ts'
import { addressReader } from '../../../src/core/request/client-address.ts'
import { defaults } from '../../../src/features/defaults.ts'
import { networks } from '../../../src/features/proxies/networks.ts'
import type { LogLine } from '../line.ts'
import type { Log } from '../read/log.ts'
import { readSender } from '../read/values.ts'
import { LineRequest } from './line-view.ts'
import type { Known } from './replayable.ts'

export interface Clients {
  /** What the log tells when it is read so. */
  known: Known
  notes: string[]
  /** The line with the address of the client, instead of the address of the connection. */
  of(line: LogLine): LogLine
}

/**
 * Reads the address of the client as `clientAddress` of the configuration says, from the headers that the log has. The address of the line is
 * that of the connection, or already the one of the client, as a proxy or server has found it.
 */
export function clientsOf(config: Config, log: Log): Clients {
  const { clientAddress: setting = 'cloudflare' } = config
  const headers = headersOf(setting)
  const isThere = headers.length > 0 && headers.every((name) => isIn(log, name))
  if (!isThere || !isOfProxies(setting, headers, log)) {
    return { known: log, notes: notesWithout(setting, headers, isThere, log), of: (line) => line }
  }
  const stages = stagesOf({ config, log: () => {} }, featuresOf(config, defaults()))
  const read = addressReader(setting, () => {}, stages)
  return {
    known: { ...log, facts: { has: (fact) => fact === 'ip' || log.facts.has(fact) } },
    notes: [
      `The address of a client is what clientAddress of the configuration finds in ${headers.join(' and ')} of the log.`,
    ],
    of(line) {
      const request = new LineRequest(line) as unknown as Request
      const address = read({ request, remoteAddress: line.ip ?? '' })
      const sender = address && readSender(formatAddress(address))
      return { ...line, ip: sender?.ip, sender }
    },
  }
}

/** True if the log has the header. Of a format with all headers it is one that a request had. */
const isIn = ({ facts, mapped, first }: Log, name: string) =>
  facts.has(`header:${name}`) &&
  (mapped.has(`header:${name}`) || first.some(({ headers }) => headers?.[name] !== undefined))

type Setting = NonNullable<Config['clientAddress']>

/** The headers that the setting reads. */
function headersOf(setting: Setting): string[] {
  if (setting === 'socket') return []
  if (setting === 'cloudflare') return ['cf-connecting-ip']
  if (typeof setting !== 'function') {
    return ['header' in setting ? setting.header.toLowerCase() : FORWARDED_FOR]
  }
  const read = new Set<string>()
  const get = (name: string) => {
    read.add(name.toLowerCase())
    return null
  }
  try {
    setting({ headers: { get } } as unknown as Request)
  } catch {}
  return [...read]
}

/** Networks in which no client of a public server is. */
const isProxy = inNetworks(Object.values(networks).flat())

/**
 * True if proxies have written the headers. Clients write them too. The deployed reader finds out by itself if it has networks. Otherwise
 * `--map` tells it, or the connections: those of proxies come from private networks, from Cloudflare, or all from one address.
 */
function isOfProxies(setting: Setting, headers: string[], log: Log): boolean {
  const trusted =
    typeof setting === 'object' &&
    ('header' in setting ? setting.trustedProxies : setting.forwardedFor.trustedProxies)
  if (typeof trusted === 'object' || !log.facts.has('ip')) return true
  if (headers.some((name) => log.mapped.has(`header:${name}`))) return true
  if (log.chain !== undefined) return headers.includes(FORWARDED_FOR)
  const lines = log.first.filter(({ ip }) => ip !== undefined)
  const withHeader = lines.filter((line) => headers.some((name) => line.headers?.[name]))
  const proxies = lines.filter(({ ip }) => isProxy(parseAddress(ip!) ?? []))
  const isOne = withHeader.length === lines.length && new Set(lines.map(({ ip }) => ip)).size === 1
  return proxies.length * 2 > lines.length || isOne
}

const FORWARDED_FOR = 'x-forwarded-for'

/** How the address is found if the headers of the setting are not read. */
function notesWithout(setting: Setting, [header]: string[], isThere: boolean, log: Log): string[] {
  if (log.chain !== undefined) {
    return [
      `The address of a client is the last one in ${log.chain}, which the nearest proxy has written. If there are more proxies, the configuration says how many: clientAddress: { forwardedFor: { trustedProxies } }.`,
    ]
  }
  if (typeof setting === 'string' || header === undefined) return []
  const reads = `clientAddress reads ${header}`
  if (isThere) {
    return [
      `${reads}, which clients can write: the connections of the log are not those of proxies. The address of the connection counts. If a proxy has written the field: --map header:${header}=FIELD.`,
    ]
  }
  const otherwise = 'The log has another address of the client, which counts.'
  const isKnown = log.facts.has(`header:${header}`)
  return [
    isKnown
      ? `${reads}, which the first requests do not have. ${otherwise}`
      : `${reads}. ${otherwise} To read the header: ${log.remedyOf(`header:${header}`)}.`,
  ]
}
