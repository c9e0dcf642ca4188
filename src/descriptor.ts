import { network } from './ip.ts'
import { normalizePath, pathMatcher } from './path.ts'
import type { KeyPart, Policy } from './policy.ts'
import type { Part } from './subject.ts'

/** What a policy makes of one request. */
export interface Descriptor {
  policy: Policy
  /** Whose quota, before it is named for the store. */
  partitionKey: Part[]
  /** Units. */
  cost: number
}

/** Tells which policies a request meets, in their order. */
export type Describe = (request: Request) => Descriptor[]

/** Compiles policies once, so that a request only runs matchers. */
export function compile(policies: Policy[]): Describe {
  const compiled = policies.map((policy) => ({ policy, meets: compileMatch(policy.match) }))
  return (request) => {
    const { hostname, pathname } = new URL(request.url)
    const seen = {
      host: hostname.replace(/\.$/, ''),
      path: normalizePath(pathname),
      method: request.method,
    }
    return compiled
      .filter(({ meets }) => meets(seen))
      .map(({ policy }) => ({
        policy,
        partitionKey: policy.key.map((part): Part => [label(part), read(part, request)]),
        cost: policy.cost,
      }))
  }
}

type Seen = { host: string; path: string; method: string }

function compileMatch({ host, path, method }: Policy['match']): (seen: Seen) => boolean {
  const hosts = host?.map((name) => name.toLowerCase())
  const paths = path?.map(pathMatcher)
  // Whoever answers GET answers HEAD by the same handler.
  const methods = method?.flatMap((name) =>
    /^get$/i.test(name) ? ['GET', 'HEAD'] : name.toUpperCase(),
  )
  return (seen) =>
    (!methods || methods.includes(seen.method)) &&
    (!hosts || hosts.some((name) => hostMatches(name, seen.host))) &&
    (!paths || paths.some((matches) => matches(seen.path)))
}

/** `*.example.com` is every host below example.com, not example.com itself. */
const hostMatches = (name: string, host: string) =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name

const label = (part: KeyPart) => (part.source === 'ip' ? 'ip' : `header:${part.name}`)

function read(part: KeyPart, request: Request): string | undefined {
  if (part.source === 'header') return request.headers.get(part.name) ?? undefined
  // The one header that Cloudflare sets itself and a client cannot. All others are a client's word.
  const address = request.headers.get('cf-connecting-ip')
  return address === null ? undefined : network(address, part.v4, part.v6)
}
