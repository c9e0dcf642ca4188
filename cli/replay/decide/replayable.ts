/** Which parts of a configuration a log can replay. */
import type { Config, ListEntry, Policy } from '../../../src/core/config/parse.ts'
import type { Fact } from '../line.ts'
import { mapRemedy, type RemedyOf } from '../read/remedies.ts'
import { conditionReads, configReads, policyReads, type Read } from './reads.ts'
import type { NotReplayed } from './verdict.ts'

/** What a log can tell. */
export interface Known {
  facts: Pick<ReadonlySet<Fact>, 'has'>
  /** How to make the log tell a fact, as a clause. */
  remedyOf?: RemedyOf
  /** What may be the address, if the log has none that the reader knows of. A clause. */
  addressMayBe?: string | undefined
}

/** A configuration without the parts that a log cannot replay. */
export interface Replayable {
  config: Config
  notReplayed: NotReplayed[]
  /** What else differs from the deployed Worker, as full sentences. */
  notes: string[]
}

export function replayable(config: Config, known: Known): Replayable {
  const notReplayed: NotReplayed[] = []
  const isReplayed = (policy: string, reads: Read[]) => {
    const reasons = reads.flatMap((read) => reasonOf(read, known))
    notReplayed.push(...[...new Set(reasons)].map((reason) => ({ policy, reason })))
    return reasons.length === 0
  }
  const entries = <Entry extends ListEntry>(list: Entry[]) =>
    list.filter(({ name, condition }) => isReplayed(name, conditionReads('it', condition)))
  const policies = config.policies.filter((policy) => isReplayed(policy.name, policyReads(policy)))
  const left = {
    ...config,
    policies: policies.map((policy) => ({ ...policy, overrides: false })),
    allow: entries(config.allow),
    deny: entries(config.deny),
    shield: undefined,
  }
  return { config: left, notReplayed, notes: notesOn(config, policies) }
}

/** Reports whether all that a configuration reads of a request is the address, so that requests with the same address have the same match. */
export const readsOnlyAddress = (config: Config): boolean =>
  config.policies.every(({ calendar }) => !calendar) &&
  configReads(config).every(({ property }) => property === 'address' || property === 'status')

/** Properties that logs have, with the fact that tells them. Every line has a method and a path. */
const facts: Record<string, [name: string, fact?: Fact]> = {
  method: ['the method'],
  path: ['the path'],
  paths: ['the path'],
  address: ['the address of the client', 'ip'],
  host: ['the host', 'host'],
  'header:host': ['the host', 'host'],
  query: ['the query', 'query'],
  search: ['the query', 'query'],
  pathParameters: ['the path'],
  country: ['the country of the client', 'country'],
  asn: ['the network of the client', 'asn'],
  colo: ['the data center', 'colo'],
  status: ['the status of the response', 'status'],
}

/** Properties that no log has, or that cannot be used without a secret. */
const words: Record<string, string> = {
  duration: 'how long a request runs',
  turn: 'the turn of a request that waits',
  body: 'the body of the request',
  token: 'a verified token',
  jwt: 'a verified token',
  apiKey: 'a known API key',
  'api-key': 'an API key',
  context: 'the context of the app',
  'proxy-token': 'the token of a trusted proxy',
  'response-body': 'the body of the response',
  botScore: 'the bot score',
  ja4: 'the JA4 fingerprint',
  verifiedBot: 'whether the client is a verified bot',
}

/** Why a part is not replayed: no reason if the log has what it reads. */
function reasonOf(
  { part, property }: Read,
  { facts: known, remedyOf = mapRemedy, addressMayBe }: Known,
): string[] {
  const [kind, header] = property.split(/:(.*)/)
  const [name, fact] =
    facts[property] ??
    (kind === 'header' ? [`the header ${header}`, property as Fact] : [undefined, undefined])
  if (name === undefined) {
    const what =
      kind === 'response-header'
        ? `the header ${header} of the response`
        : (words[property] ?? `${property} of the request`)
    return [`${part} reads ${what}, which a replay does not have`]
  }
  if (fact === undefined || known.has(fact)) return []
  if (fact === 'ip' && addressMayBe) return [`${part} reads ${name}, which may be ${addressMayBe}`]
  return [`${part} reads ${name}, which the log does not have: ${remedyOf(fact)}`]
}

function notesOn({ shield, live }: Config, policies: Policy[]): string[] {
  const named = (isMeant: (policy: Policy) => unknown, text: string) => {
    const names = policies.filter(isMeant).map(({ name }) => name)
    return names.length > 0 ? [`${names.join(', ')}: ${text}`] : []
  }
  return [
    ...named(
      ({ countOnly }) => countOnly,
      'A response that does not count is refunded at once. In production it is refunded when the response arrives.',
    ),
    ...named(
      ({ lease }) => lease,
      'Every request is decided exactly. In production isolates take leases, which may refuse a little earlier.',
    ),
    ...named(
      ({ overrides }) => overrides,
      'Limits that operators have set for single keys are not replayed.',
    ),
    ...(shield ? ['The shield is not replayed: Cloudflare counts it inexactly.'] : []),
    ...(live ? ['The live document is not read: the policies of the file are replayed.'] : []),
  ]
}
