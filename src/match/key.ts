import { network } from '../base/ip.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import { createApiKey } from '../credentials/api-key.ts'
import { type Claims, createClaims } from '../credentials/jwt.ts'
import { pathMatcher } from '../request/path.ts'
import { readSource, Unusable } from '../request/source.ts'
import type { RequestView } from '../request/view.ts'
import type { Part } from './subject.ts'

/** What the parts of keys are read with, besides the request. */
export interface KeyReaders {
  claims: Claims
  apiKey: (view: RequestView) => Promise<string | Unusable | undefined>
  /** Told that a key function threw, or found what is no key: the part counts as missing. */
  onKeyError: (error: unknown) => void
}

export function keyReaders(
  config: Pick<Config, 'jwt' | 'apiKeys' | 'policies' | 'deadlineMs'>,
  log: Log,
): KeyReaders {
  const { jwt, apiKeys, policies } = config
  // Half of the shortest, so that keys which do not come leave the store its time.
  const deadlines = policies.length > 0 ? policies : [config] // those to come are live
  const deadlineMs = Math.min(...deadlines.map((one) => one.deadlineMs)) / 2
  return {
    claims: jwt ? createClaims(jwt, { deadlineMs, log }) : async () => undefined,
    apiKey: createApiKey(apiKeys, log),
    onKeyError: (error) =>
      log(
        'key-error',
        (error as Error)?.name ?? '',
        'a key function threw, or found no text or number: its part counts as missing',
      ),
  }
}

/** What a part is called in a partition key, in messages, and in plain subjects. */
export function labelOf(part: KeyPart): string {
  if (part.source === 'path-parameter') return `path:${part.name}`
  return 'name' in part ? `${part.source}:${part.name}` : part.source
}

type Read = (view: RequestView) => unknown

/** Compiles a key into the partition key of a request; a part that is missing, empty or unusable has no value. */
export function compileKey(
  key: KeyPart[],
  paths: string[],
  options: { caseSensitivePaths: boolean },
  readers: KeyReaders,
  label: (part: KeyPart) => string = labelOf,
): (view: RequestView) => Promise<Part[]> {
  const patterns = paths.map((pattern) => pathMatcher(pattern, options.caseSensitivePaths))
  const reads = key.map((part): [string, Read] => [label(part), reader(part, patterns, readers)])
  return (view) => Promise.all(reads.map(async ([label, read]) => partOf(label, await read(view))))
}

function reader(
  part: KeyPart,
  patterns: ReturnType<typeof pathMatcher>[],
  { claims, apiKey, onKeyError }: KeyReaders,
): Read {
  switch (part.source) {
    case 'ip':
      return ({ address }) => address && network(address, part.v4, part.v6)
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
      return ({ path }) => patterns.map((match) => match(path)?.[part.name]).find((value) => value)
    case 'function':
      return async ({ context }) => {
        try {
          const value = await part.read(context)
          // An object's text is that of all objects: one quota for everybody.
          if (Object(value) === value) throw new TypeError()
          return value
        } catch (error) {
          onKeyError(error) // a key that cannot be told must not be an outage
          return undefined
        }
      }
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

/** What is no text as JSON: the number 7 and the text "7" are one user to most issuers. */
const claim = (value: unknown) =>
  value === undefined || value === null || value === ''
    ? undefined
    : typeof value === 'string'
      ? value
      : JSON.stringify(value)

function partOf(label: string, value: unknown): Part {
  if (value instanceof Unusable) return [label, undefined, value.why]
  const isMissing = value === undefined || value === null || value === ''
  return [label, isMissing ? undefined : String(value)]
}
