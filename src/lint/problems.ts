/** Hints for the problems that the parser finds. They are here, and not in the parser, to stay out of the Worker's bundle. */
import { type ConfigProblem, messageOf } from '../base/errors.ts'
import { nearest } from './nearest.ts'

const isUnknownField = (expected: string) => expected.startsWith('one of the fields ')

/** A problem as the message of a finding, and what to write instead; the hint is empty where the message says it all. */
export function explained(problem: ConfigProblem): { message: string; hint: string } {
  const hint = hintOf(problem)
  const message = messageOf(problem)
  if (!hint || !isUnknownField(problem.expected)) return { message, hint }
  return { message: `unknown field${/ \(in ".*"\)$/s.exec(message)?.[0] ?? ''}`, hint }
}

function hintOf({ path, expected, got }: ConfigProblem): string {
  const [, listed] = /^one of (?:the fields )?(.*)/.exec(expected) ?? []
  if (listed) return suggestion(path, expected, got, listed.split(', '))
  const text = textOf(got)
  if (/\.path(\[\d+\])?$/.test(path)) return pathHint(got, text)
  if (/\.(key|plan)(\.key)?(\[\d+\])?$/.test(path)) return keyHint(expected, text)
  if (expected.startsWith('the name of a variable')) {
    const name = path === 'jwt.secret' ? 'JWT_SECRET' : 'API_KEYS'
    return `Write the name of a variable in capitals here, and give the Worker its value: npx wrangler secret put ${name}`
  }
  return ''
}

function suggestion(path: string, expected: string, got: string, candidates: string[]): string {
  const isField = isUnknownField(expected)
  const word = isField ? path.split('.').at(-1)! : textOf(got)
  const candidate = word === undefined ? undefined : nearest(word, candidates)
  if (!candidate) return ''
  return `Did you mean ${isField ? candidate : `'${candidate}'`}?`
}

function pathHint(got: string, text: string | undefined): string {
  if (text === undefined) {
    return got.startsWith('/')
      ? "A path is a text such as '/api/*'; regular expressions are not supported."
      : ''
  }
  if (!text.startsWith('/')) return text ? `Write '/${text}': a path begins with '/'.` : ''
  const [path] = text.split(/[?#]/)
  if (path !== text) return `Write '${path}': a policy does not see the query in a path.`
  if (/\*\*$/.test(path!) && !path!.slice(0, -2).includes('*')) {
    const below = path!.replace(/\/?\*+$/, '')
    return `Write '${below}/*': it covers every path below ${below || '/'}.`
  }
  if (path!.includes('*')) {
    const parameters = path!.replace(/\/\*+(?=\/)/g, '/:name')
    return parameters.replace(/\/\*$/, '').includes('*')
      ? "'*' stands only at the end, as a whole segment, as in '/api/*'."
      : `Write '${parameters}': a name takes one segment, and '*' stands only at the end.`
  }
  return ''
}

function keyHint(expected: string, text: string | undefined): string {
  if (expected.startsWith('a jwt in the configuration')) {
    return "Add jwt beside policies, such as jwt: { secret: 'JWT_SECRET' }: it says how tokens are verified."
  }
  if (text?.startsWith('body:')) {
    return 'No part reads the body of a request. In your own Hono app a key may be a function that reads it.'
  }
  const plain = [...expected.matchAll(/"([a-z-]+)"/g)].map(([, name]) => name!)
  const candidate = text && nearest(text, plain)
  return candidate ? `Did you mean '${candidate}'?` : ''
}

/** The text that a problem got; nothing where it got something else, or only the beginning is known. */
function textOf(got: string): string | undefined {
  try {
    const value = JSON.parse(got)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
