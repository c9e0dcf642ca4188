/** Hints for the problems of the parser. They are part of the linter, so that the Worker's bundle does not contain them. */
import { type ConfigProblem, messageOf } from '../core/base/errors.ts'
import { parsedJson } from '../core/base/json.ts'
import { didYouMean, nearest } from './nearest.ts'
import { algorithmHint, durationHint, headerSetHint, neighbourField } from './neighbours.ts'

/** Features with parameters, as they are written in `use`. Others are written as `name()`. */
const FEATURES: Record<string, string | undefined> = {
  __proto__: null as never,
  observe: "observe({ to: 'log' })",
  jwt: "jwt({ secret: 'JWT_SECRET' })",
  bodies: 'bodies()',
  cluster: 'cluster()',
}

/** What the parser expects in place of a name that is there twice. */
export const DUPLICATE = 'a name that no other policy has'

const isUnknownField = (expected: string) => expected.startsWith('one of the fields ')

/** Converts a problem to the message of a finding and a hint on what to write instead. The hint is empty if there is nothing to add. */
export function explained(problem: ConfigProblem): { message: string; hint: string } {
  const hint = hintOf(problem)
  const message = messageOf(problem)
  if (!hint || !isUnknownField(problem.expected)) return { message, hint }
  return { message: `unknown field${/ \(in ".*"\)$/s.exec(message)?.[0] ?? ''}`, hint }
}

function hintOf({ path, expected, got }: ConfigProblem): string {
  if (expected === DUPLICATE)
    return 'Rename one of the two policies: the name appears in the RateLimit fields and marks the counters in Redis.'
  const feature = FEATURES[path]
  if (feature && isUnknownField(expected))
    return `Write use: [${feature}] beside policies, with import { ${path} } from 'sluice/features'.`
  const text = textOf(got)
  const ofNeighbour =
    (isUnknownField(expected) &&
      neighbourField(path, /^one of the fields limits?,/.test(expected))) ||
    (/^headers\b/.test(path) && headerSetHint(text ?? '')) ||
    (/\.algorithm$/.test(path) && algorithmHint(text ?? ''))
  if (ofNeighbour) return ofNeighbour
  if (text !== undefined && expected.startsWith('a duration')) return durationHint(text)
  const [, candidates] = /^one of (?:the fields )?(.*)/.exec(expected) ?? []
  if (candidates) return suggestion(path, expected, got, candidates.split(', '))
  const [, missing] = /^use: \[(\w+)\(\)\]/.exec(expected) ?? []
  if (missing) return `Write use: [${FEATURES[missing] ?? `${missing}()`}] beside policies.`
  if (path === 'store' && expected.startsWith('the result of')) {
    return /durable/i.test(got)
      ? "Write import { durableObjects } from 'sluice/durable-objects', and store: durableObjects() beside policies."
      : "Write import { redis } from 'sluice/redis', and store: redis(client) beside policies."
  }
  if (/\.path(\[\d+\])?$/.test(path)) return pathHint(got, text)
  if (/\.match$/.test(path) && text?.startsWith('/')) return `Write match: { path: '${text}' }.`
  const [, list] = /^(allow|deny)(?:\[\d+\])?$/.exec(path) ?? []
  if (list && text && /[.:]/.test(text))
    return `Write ${list}: [{ name: 'office', ip: '${text}' }].`
  if (/\.(key|plan)(\.key)?(\[\d+\])?$/.test(path)) return keyHint(expected, text)
  if (expected.startsWith('the name of a variable')) {
    const name = path === 'jwt.secret' ? 'JWT_SECRET' : 'API_KEYS'
    return `Write the name of a variable in capitals, and set its value with: npx wrangler secret put ${name}`
  }
  return ''
}

function suggestion(path: string, expected: string, got: string, candidates: string[]): string {
  if (!isUnknownField(expected)) return didYouMean(textOf(got) ?? '', candidates)
  const candidate = nearest(path.split('.').at(-1)!, candidates)
  return candidate ? `Did you mean ${candidate}?` : ''
}

function pathHint(got: string, text: string | undefined): string {
  if (text === undefined) {
    return got.startsWith('/')
      ? "Write a string such as '/api/*': regular expressions are not supported."
      : ''
  }
  const [, host, rest = ''] = /^https?:\/\/([^/?#]+)([^?#]*)/i.exec(text) ?? []
  if (host !== undefined) {
    return `Write path: '${rest || '/'}' and host: '${host.replace(/:\d+$/, '').toLowerCase()}': a path has no scheme and no host.`
  }
  if (!text.startsWith('/')) return text ? `Write '/${text}': a path starts with '/'.` : ''
  const [path] = text.split(/[?#]/)
  if (path !== text) return `Write '${path}': a path does not include the query.`
  if (/\*\*$/.test(path!) && !path!.slice(0, -2).includes('*')) {
    const below = path!.replace(/\/?\*+$/, '')
    return `Write '${below}/*': it covers every path below ${below || '/'}.`
  }
  if (path!.includes('*')) {
    const parameters = path!.replace(/\/\*+(?=\/)/g, '/:name')
    return parameters.replace(/\/\*$/, '').includes('*')
      ? "Use '*' only as the last segment, as in '/api/*'."
      : `Write '${parameters}': a parameter matches one segment, and '*' is allowed only at the end.`
  }
  return ''
}

function keyHint(expected: string, text: string | undefined): string {
  if (text && /^body\b/.test(text)) {
    return 'Write the path of a value of the JSON body, such as "body:params.name".'
  }
  const plain = [...expected.matchAll(/"([a-z-]+)"/g)].map(([, name]) => name!)
  return text ? didYouMean(text, plain) : ''
}

/** The string that a problem got. Returns `undefined` for another type, or if the string is cut. */
function textOf(got: string): string | undefined {
  const value = parsedJson(got)
  return typeof value === 'string' ? value : undefined
}
