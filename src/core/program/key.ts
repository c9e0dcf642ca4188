import { type Address, network } from '../base/ip.ts'
import type { Log } from '../base/log.ts'
import type { Part } from '../base/part.ts'
import { Unusable } from '../base/unusable.ts'
import { type Soon, whenAllKnown } from '../base/when-known.ts'
import type { Config } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import { createApiKey } from '../request/api-key.ts'
import type { Claims } from '../request/claims.ts'
import { folded } from '../request/fold.ts'
import { pathMatcher } from '../request/path.ts'
import { readSource, UNREADABLE } from '../request/source.ts'
import type { RequestView } from '../request/view.ts'

/** Readers for the key parts that need more than the request. */
export interface KeyReaders {
  claims: Claims
  apiKey: (view: RequestView) => Promise<string | Unusable | undefined>
  /** Called if a key function throws or returns an invalid key. The part then counts as missing. */
  onKeyError: (error: unknown) => undefined
}

/** @param claims reads the claims of tokens. Undefined without `jwt()` */
export function keyReaders(
  { apiKeys }: Pick<Config, 'apiKeys'>,
  log: Log,
  claims: Claims = async () => undefined,
): KeyReaders {
  return {
    claims,
    apiKey: createApiKey(apiKeys, log),
    onKeyError: (error) =>
      void log(
        'key-error',
        (error as Error)?.name ?? '',
        'a key function threw an error or returned an object: the key part counts as missing',
      ),
  }
}

/** The label of a part in partition keys, messages and readable subjects. */
export function labelOf(part: KeyPart): string {
  if (part.source === 'path-parameter') return `path:${part.name}`
  return 'name' in part ? `${part.source}:${part.name}` : part.source
}

type Read = (view: RequestView) => unknown

/**
 * Folds a value that the client writes, and that may name an account: all spellings of an account have one quota. Values of an issuer, of an
 * app, and of a digest are exact.
 */
export function foldPart(
  part: KeyPart,
  value: string,
  { caseSensitivePaths }: { caseSensitivePaths: boolean },
): string {
  switch (part.source) {
    case 'path-parameter':
      return caseSensitivePaths ? value : folded(value)
    case 'body':
      return part.digest ? value : folded(value)
    case 'header':
    case 'cookie':
    case 'query':
      return folded(value)
    default:
      return value
  }
}

/**
 * Compiles a key into a function that reads the partition key of a request. A part that is missing, empty or unusable has no value.
 * @param exact a part that is not folded: a plan has one name, and of the values that a policy counts with `distinct` each spelling is another one
 */
export function compileKey(
  key: KeyPart[],
  paths: string[],
  options: { caseSensitivePaths: boolean },
  readers: KeyReaders,
  label: (part: KeyPart) => string = labelOf,
  exact?: KeyPart,
): (view: RequestView) => Soon<Part[]> {
  const patterns = paths.map((pattern) => pathMatcher(pattern, options.caseSensitivePaths))
  const [first] = key
  if (key.length === 1 && first!.source === 'ip') return networkKey(first as NetworkPart, label)
  const reads = key.map((part) =>
    partReader(
      label(part),
      reader(part, patterns, readers),
      part === exact ? String : (value) => foldPart(part, String(value), options),
    ),
  )
  const [only] = reads
  if (reads.length > 1 || !only) return (view) => whenAllKnown(reads.map((read) => read(view)))
  return (view) => {
    const part = only(view)
    return part instanceof Promise ? part.then((known) => [known]) : [part]
  }
}

function partReader(
  label: string,
  read: Read,
  textOf: (value: unknown) => string,
): (view: RequestView) => Soon<Part> {
  const partOf = (value: unknown): Part => {
    if (value instanceof Unusable) return [label, undefined, value.why]
    const isMissing = value === undefined || value === null || value === ''
    return [label, isMissing ? undefined : textOf(value)]
  }
  return (view) => {
    const value = read(view)
    return value instanceof Promise ? value.then(partOf) : partOf(value)
  }
}

type NetworkPart = Extract<KeyPart, { source: 'ip' }>

/** Reads a key of the network alone. Each recent client has one, which is frozen because its requests share it. */
function networkKey(
  part: NetworkPart,
  label: (part: KeyPart) => string,
): (view: RequestView) => Part[] {
  const own = label(part)
  const known = new WeakMap<Address, Part[]>()
  return ({ address }) => {
    if (!address) return [[own, undefined]]
    const found = known.get(address)
    if (found) return found
    const key: Part[] = [[own, network(address, part.v4, part.v6)]]
    known.set(address, Object.freeze(key) as Part[])
    return key
  }
}

function networkReader(part: NetworkPart): Read {
  const read = networkKey(part, labelOf)
  return (view) => read(view)[0]![1]
}

function reader(
  part: KeyPart,
  patterns: ReturnType<typeof pathMatcher>[],
  { claims, apiKey, onKeyError }: KeyReaders,
): Read {
  /** The result of a key function that is a promise. */
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
  switch (part.source) {
    case 'ip':
      return networkReader(part)
    case 'header':
    case 'cookie':
    case 'query': {
      const source = { source: part.source, name: part.name }
      return (view) => readSource(source, view)
    }
    case 'jwt':
      return async (view) => {
        const found = await claims(view)
        return found instanceof Unusable ? found : claim(found?.[part.name])
      }
    case 'path-parameter':
      return ({ path, omitted }) =>
        omitted?.includes('path')
          ? UNREADABLE
          : patterns.map((match) => match(path)?.[part.name]).find((value) => value)
    case 'path':
      return ({ path, omitted }) => (omitted?.includes('path') ? UNREADABLE : path)
    case 'function':
      return ({ context }) => {
        try {
          const value = part.read(context)
          return Object(value) === value ? resultOf(value) : value
        } catch (error) {
          return onKeyError(error) // an error in a key function must not cause an outage
        }
      }
    case 'body':
      return ({ message }) => message?.read(part, UNREADABLE)
    case 'api-key':
      return apiKey
    case 'global':
      return () => 'global'
    default: {
      const { source } = part
      return (view) => view[source]
    }
  }
}

/** A claim that is not a string is encoded as JSON. The number 7 and the string "7" are equal, because most issuers mean the same user. */
const claim = (value: unknown) =>
  value === undefined || value === null || value === ''
    ? undefined
    : typeof value === 'string'
      ? value
      : JSON.stringify(value)
