import type { Log } from '../base/log.ts'
import { type Part, UNREADABLE, Unusable } from '../base/part.ts'
import { type Soon, whenAllKnown, whenKnown } from '../base/when-known.ts'
import type { Config } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import type { createApiKey } from '../request/api-key.ts'
import type { Cased, Claims, RequestView } from '../request/view.ts'
import {
  type KeyReaders,
  networkKey,
  type Read,
  type Sources,
  sourceOf,
  sources,
} from './source.ts'

export interface KeyStages {
  /** Reads the claims of a request's token, for the key part `jwt:<claim>`. */
  claims?: Claims
  createApiKey?: typeof createApiKey
  sources?: Sources
}

export function keyReaders(
  { apiKeys }: Pick<Config, 'apiKeys'>,
  log: Log,
  { claims = async () => undefined, createApiKey, sources: others }: KeyStages,
): KeyReaders {
  return {
    claims,
    apiKey: createApiKey?.(apiKeys, log),
    sources: { ...sources, ...others },
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

/**
 * Compiles a key into a function that reads the partition key of a request. A part that is missing, empty or unusable has no value.
 * @param exact a part that is not folded: a plan, or a value of `distinct`, each spelling of which is another one
 */
export function compileKey(
  key: KeyPart[],
  paths: string[],
  options: Cased,
  readers: KeyReaders,
  label: (part: KeyPart) => string = labelOf,
  exact?: KeyPart,
): (view: RequestView) => Soon<Part[]> {
  const [first] = key
  if (key.length === 1 && first?.source === 'ip') return networkKey(first, label(first))
  const reads = key.map((part) => {
    const source = sourceOf(readers.sources, part)
    const isExact = part === exact || !source.fold
    return partReader(
      label(part),
      source.compile(part, { ...options, paths, readers, unreadable: UNREADABLE }),
      isExact ? String : (value) => source.fold!(String(value), part, options),
    )
  })
  const [only] = reads
  if (reads.length > 1 || !only) return (view) => whenAllKnown(reads.map((read) => read(view)))
  return (view) => whenKnown(only(view), (part) => [part])
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
  return (view) => whenKnown(read(view), partOf)
}
