import { contains } from '../base/contains.ts'
import { sha256 } from '../base/digest.ts'
import { type Address, network, networkRange, parseAddress } from '../base/ip.ts'
import { needed } from '../base/needed.ts'
import { type Part, Unusable } from '../base/part.ts'
import type { Soon } from '../base/when-known.ts'
import type { Config } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import type { createApiKey } from '../request/api-key.ts'
import { folded } from '../request/fold.ts'
import { readSource } from '../request/source.ts'
import type { Cased, Claims, RequestView } from '../request/view.ts'

/** Readers for the key parts that need more than the request. */
export interface KeyReaders {
  claims: Claims
  /** Undefined if nothing depends on API keys. */
  apiKey: ReturnType<typeof createApiKey> | undefined
  /** Called if a key function throws or returns an invalid key, which counts as missing. */
  onKeyError: (error: unknown) => undefined
  sources: Sources
}

export type Read = (view: RequestView) => unknown

export interface SourceOptions extends Cased {
  paths: string[]
  readers: KeyReaders
  /** The result of a value that cannot be read. A feature of another copy of the package has another class. */
  unreadable: Unusable
}

export interface PartSource {
  compile(part: KeyPart, options: SourceOptions): Read
  /** Folds a value that the client writes, and that may name an account: all spellings of one have one quota. Defaults to the exact value. */
  fold?(value: string, part: KeyPart, options: Cased): string
  /** Reads a given value. Returns `undefined` if it is missing, or an error whose message is the expected value. Defaults to `fold`. */
  given?(value: string, part: KeyPart, options: Cased): Soon<string | undefined | Error>
}

export type Sources = Readonly<Partial<Record<KeyPart['source'], PartSource>>>

/** True if a part of a key has one of these sources. A live document may have any. */
export const readsSource = ({ live, policies, shield }: Config, sources: Sources): boolean =>
  live !== undefined || contains([policies, shield], ({ source }) => `${source}` in sources)

/** @throws {Error} if no part of the limiter has the source */
export const sourceOf = (sources: Sources, { source }: KeyPart): PartSource =>
  needed(sources[source], source)

type NetworkPart = Extract<KeyPart, { source: 'ip' }>

/** Reads a key of the network alone. Each recent client has one, which is frozen because its requests share it. */
export function networkKey(part: NetworkPart, label: string): (view: RequestView) => Part[] {
  const known = new WeakMap<Address, Part[]>()
  return ({ address }) => {
    if (!address) return [[label, undefined]]
    const found = known.get(address)
    if (found) return found
    const key: Part[] = [[label, network(address, part.v4, part.v6)]]
    known.set(address, Object.freeze(key) as Part[])
    return key
  }
}

/** Returns the counted network of an address or of a smaller network, in the form that keys use. */
function networkOf(text: string, { v4, v6 }: NetworkPart): string | undefined {
  const one = parseAddress(text)
  const range = one ? [one] : networkRange(text)
  const [first, last = first] = range?.map((address) => network(address, v4, v6)) ?? []
  return first === last ? first : undefined
}

/** Returns a host in the form of URLs: lower case, ASCII, without port and final dot. */
function hostOf(text: string): string | undefined {
  const url = `http://${text}/`
  if (/[\s/?#@\\]/.test(text) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.replace(/\.$/, '')
}

/** A claim that is not a string is encoded as JSON. The number 7 and the string "7" are equal, because most issuers mean the same user. */
const claim = (value: unknown) =>
  value === undefined || value === null || value === ''
    ? undefined
    : typeof value === 'string'
      ? value
      : JSON.stringify(value)

const ofView: PartSource = {
  compile:
    ({ source }) =>
    (view) =>
      view[source as 'method'],
}
const inUpperCase: PartSource = { ...ofView, given: (value) => value.toUpperCase() }

/** The sources of every limiter. Parts and features have others. */
export const sources: Sources = {
  ip: {
    compile(part: NetworkPart) {
      const read = networkKey(part, '')
      return (view) => read(view)[0]![1]
    },
    given: (value, part: NetworkPart) =>
      networkOf(value, part) ?? new Error('an IP address, or a network that shares a quota'),
  },
  jwt: {
    compile:
      ({ name }: Extract<KeyPart, { source: 'jwt' | 'path-parameter' }>, { readers }) =>
      async (view) => {
        const found = await readers.claims(view)
        return found instanceof Unusable ? found : claim(found?.[name])
      },
  },
  function: {
    compile({ read }: Extract<KeyPart, { source: 'function' }>, { readers: { onKeyError } }) {
      const resultOf = async (promise: unknown) => {
        try {
          const value = await promise
          // All objects have the same text, so that all clients would share one quota.
          if (Object(value) === value) throw new TypeError()
          return value
        } catch (error) {
          return onKeyError(error)
        }
      }
      return ({ context }) => {
        try {
          const value = read(context)
          return Object(value) === value ? resultOf(value) : value
        } catch (error) {
          return onKeyError(error) // an error in a key function must not cause an outage
        }
      }
    },
  },
  global: {
    compile: () => () => 'global',
    given: (value) => (value === 'global' ? value : new Error('"global"')),
  },
  host: { ...ofView, given: (value) => hostOf(value) ?? new Error('a host') },
  ...{ method: inUpperCase, country: inUpperCase, colo: inUpperCase },
  ...{ asn: ofView, ja4: ofView, verifiedBot: ofView },
}

/** Those that only some configurations have. */
export const apiKeySource: Sources = {
  'api-key': {
    compile: (_, { readers }) => needed(readers.apiKey, 'apiKeys'),
    // Quotas are counted by the digest of a key, so an operator may only know the digest.
    given: (value) => /^sha256:([\da-f]{64})$/i.exec(value)?.[1]?.toLowerCase() ?? sha256(value),
  },
}

const named: PartSource = {
  compile: (part: Extract<KeyPart, { source: 'header' | 'cookie' | 'query' }>) => (view) =>
    readSource(part, view),
  fold: folded,
}

/** Values that a client writes. */
export const clientValues: Sources = { header: named, cookie: named, query: named }
