/** Which parts of a configuration a log can replay. */
import type { Config, ListEntry, Policy } from '../../../src/config/parse.ts'
import type { Condition } from '../../../src/config/schema/condition.ts'
import type { KeyPart } from '../../../src/config/schema/key.ts'
import type { Fact } from '../line.ts'
import type { NotReplayed } from './verdict.ts'

/** A part of a request that a policy or an entry reads. Without a fact, no log has it. */
interface Need {
  what: string
  fact?: Fact
}

/** A configuration without the parts that a log cannot replay. */
export interface Replayable {
  config: Config
  notReplayed: NotReplayed[]
  /** What else differs from the deployed Worker, as full sentences. */
  notes: string[]
}

export function replayable(config: Config, facts: ReadonlySet<Fact>): Replayable {
  const notReplayed: NotReplayed[] = []
  const isReplayed = (name: string, needs: Need[]) => {
    const lacking = needs.find(({ fact }) => !fact || !facts.has(fact))
    if (lacking) notReplayed.push({ policy: name, reason: reasonOf(lacking) })
    return !lacking
  }
  const entries = <Entry extends ListEntry>(list: Entry[]) =>
    list.filter(({ name, condition }) => isReplayed(name, conditionNeeds('it reads', condition)))
  const left = {
    ...config,
    policies: config.policies.filter((policy) => isReplayed(policy.name, policyNeeds(policy))),
    allow: entries(config.allow),
    deny: entries(config.deny),
    shield: undefined,
  }
  return { config: left, notReplayed, notes: notesOn(config, left.policies) }
}

/** Reports whether all that a configuration reads of a request is the address, so that requests with the same address have the same match. */
export function readsOnlyAddress({ policies, allow, deny }: Config): boolean {
  const needs = [
    ...policies.flatMap(policyNeeds),
    ...[...allow, ...deny].flatMap(({ condition }) => conditionNeeds('', condition)),
  ]
  return (
    needs.every(({ fact }) => fact === 'ip' || fact === 'status') &&
    policies.every(({ calendar, cost }) => !calendar && cost.header === undefined) &&
    // A name with one of these words only costs time.
    !/"(path|path-parameter|method)"/.test(JSON.stringify([policies, allow, deny]))
  )
}

function policyNeeds(policy: Policy): Need[] {
  const { algorithm, match, key, onMissingKey, plan, claim, cost, countOnly } = policy
  const otherKey = typeof onMissingKey === 'object' ? onMissingKey.key : []
  const slots = { what: 'it counts concurrent requests, and a log does not say how long they ran' }
  return [
    ...(algorithm === 'concurrency' ? [slots] : []),
    ...conditionNeeds('its match reads', match),
    ...key.flatMap((part) => partNeeds('its key reads', part)),
    ...otherKey.flatMap((part) => partNeeds('its onMissingKey reads', part)),
    ...(plan ? partNeeds('its plan reads', plan.key) : []),
    ...(claim ? partNeeds('its limit reads', { source: 'jwt', name: claim.claim }) : []),
    ...cost.rules.flatMap(({ condition }) => conditionNeeds('its cost reads', condition)),
    ...(countOnly ? [need('its countOnly reads', 'status')] : []),
  ]
}

function conditionNeeds(who: string, condition: Condition): Need[] {
  const { host, country, header = [], ip, not = [] } = condition
  return [
    ...(host ? [need(who, 'host')] : []),
    ...(country ? [need(who, 'country')] : []),
    ...(ip ? [need(who, 'ip')] : []),
    ...header.map(({ name }) => headerNeed(who, name)),
    ...not.flatMap((other) => conditionNeeds(who, other)),
  ]
}

function partNeeds(who: string, part: KeyPart): Need[] {
  switch (part.source) {
    case 'header':
      return [headerNeed(who, part.name)]
    case 'cookie':
      return [{ what: `${who} the cookie ${part.name}`, fact: 'header:cookie' }]
    case 'query':
      return [{ what: `${who} the query parameter ${part.name}`, fact: 'query' }]
    case 'jwt':
      return [{ what: `${who} the claim ${part.name} of a token, and logs have no tokens` }]
    case 'api-key':
      return [{ what: `${who} the API key, and logs have no keys` }]
    case 'function':
      return [{ what: `${who} the result of a function, which needs the context of the app` }]
    case 'ip':
    case 'host':
    case 'country':
    case 'asn':
    case 'colo':
      return [need(who, part.source)]
    default:
      return []
  }
}

const WORDS = {
  ip: 'the address of the client',
  host: 'the host',
  country: 'the country of the client',
  asn: 'the network of the client',
  colo: 'the data center',
  status: 'the status of the response',
}

const need = (who: string, fact: keyof typeof WORDS): Need => ({
  what: `${who} ${WORDS[fact]}`,
  fact,
})

const headerNeed = (who: string, name: string): Need =>
  name === 'host'
    ? need(who, 'host')
    : { what: `${who} the header ${name}`, fact: `header:${name}` }

function reasonOf({ what, fact }: Need): string {
  if (!fact) return what
  const remedy = fact === 'host' ? '--host NAME or --map host=FIELD' : `--map ${fact}=FIELD`
  return `${what}, which the log does not have (${remedy})`
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
      ({ cost }) => cost.response,
      'The cost in the response is not in the log, so the whole cost is charged.',
    ),
    ...named(
      ({ cost }) => cost.header,
      'The cost that a trusted proxy sets is not in the log, so requests cost what rules and otherwise say.',
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
