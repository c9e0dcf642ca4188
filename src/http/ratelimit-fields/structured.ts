/** As much of Structured Fields (RFC 9651) as the `RateLimit` fields of all drafts are made of. */

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

// Sticky: each is tried at one place only, so that no text takes more than linear time.
const STRING_MEMBER = new RegExp(`()(${STRING})${PARAMETERS}`, 'y')
const INTEGER_MEMBER = new RegExp(`()(-?\\d{1,15})${PARAMETERS}`, 'y')
const KEYED_MEMBER = new RegExp(`(${KEY})(?:=(${BARE_ITEM}))?${PARAMETERS}`, 'y')
const COMMA = /[ \t]*,[ \t]*/y

/** A member of a List or Dictionary, as it is written. */
interface Member {
  key: string
  value: string
  parameters: string
}

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

/** The value of a parameter, as it is written; of two the last counts. */
export function parameterOf({ parameters }: Member, name: string): string | undefined {
  return [...parameters.matchAll(PARAMETER)].findLast(([, key]) => key === name)?.[2]
}

/** A List of Strings; nothing where it is none, or empty. */
export const parseStrings = (text: string) => parse(text, STRING_MEMBER)

/** A List of Integers, or one Item; nothing where it is none, or empty. */
export const parseIntegers = (text: string) => parse(text, INTEGER_MEMBER)

/** A Dictionary of Items; nothing where it is none, or empty. Of two with one key the last counts. */
export const parseDictionary = (text: string) =>
  parse(text, KEYED_MEMBER)?.reduce(
    (values, { key, value }) => values.set(key, value),
    new Map<string, string>(),
  )

/** An sf-string (4.1.6). */
export const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`
