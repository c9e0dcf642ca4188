/** A parser for the parts of Structured Fields (RFC 9651) that the `RateLimit` fields of all drafts use. */

const KEY = '[a-z*][a-z0-9_.*-]*'
const STRING = '"(?:[ !#-[\\]-~]|\\\\["\\\\])*"'
const BARE_ITEM = [
  STRING,
  '-?\\d{1,12}\\.\\d{1,3}',
  '@?-?\\d{1,15}',
  "[A-Za-z*][\\w!#$%&'*+.^`|~:/-]*",
  ':[A-Za-z0-9+/=]*:',
  '\\?[01]',
  '%"(?:[ !#$&-~]|%[0-9a-f]{2})*"',
].join('|')
const PARAMETER = new RegExp(`; *(${KEY})(?:=(${BARE_ITEM}))?`, 'g')
const PARAMETERS = `((?:${PARAMETER.source})*)`

// Sticky, so that each expression is tried at one position only: parsing takes linear time.
const STRING_MEMBER = new RegExp(`()(${STRING})${PARAMETERS}`, 'y')
const INTEGER_MEMBER = new RegExp(`()(-?\\d{1,15})${PARAMETERS}`, 'y')
const KEYED_MEMBER = new RegExp(`(${KEY})(?:=(${BARE_ITEM}))?${PARAMETERS}`, 'y')
const COMMA = /[ \t]*,[ \t]*/y

type Member = Record<'key' | 'value' | 'parameters', string>

function parse(text: string, member: RegExp): Member[] | undefined {
  const members: Member[] = []
  for (let at = 0; ; at = COMMA.lastIndex) {
    member.lastIndex = at
    const found = member.exec(text)
    if (!found) return undefined
    const [, key = '', value = '', parameters = ''] = found
    members.push({ key, value, parameters })
    if (member.lastIndex === text.length) return members
    COMMA.lastIndex = member.lastIndex
    if (!COMMA.test(text)) return undefined
  }
}

/** Returns the serialized value of a parameter. If it appears twice, the last value counts. */
function parameterOf({ parameters }: Member, name: string): string | undefined {
  return [...parameters.matchAll(PARAMETER)].findLast(([, key]) => key === name)?.[2]
}

/** Parses a List of Strings. Returns `undefined` if it is malformed or empty. */
export const parseStrings = (text: string) => parse(text, STRING_MEMBER)

/** The smallest number in fields of these names; infinity without one. Several proxies that each add a number make a list. */
export const leastIn = (headers: Headers, ...names: string[]): number =>
  least(
    names
      .flatMap((name) => parse(headers.get(name) ?? '', INTEGER_MEMBER) ?? [])
      .map(({ value }) => value),
  )

export function leastOfDrafts(headers: Headers): number {
  const text = headers.get('RateLimit') ?? ''
  const list = parseStrings(text)?.map((member) => parameterOf(member, 'r')) ?? []
  const member = parse(text, KEYED_MEMBER)?.findLast(({ key }) => key === 'remaining')?.value
  return Math.min(least([...list, member]), leastIn(headers, 'RateLimit-Remaining'))
}

const least = (values: (string | undefined)[]) =>
  values
    .filter((value) => value !== undefined && /^-?\d+$/.test(value))
    .reduce((least, value) => Math.min(least, Number(value)), Number.POSITIVE_INFINITY)
