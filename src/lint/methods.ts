/** Methods that no client sends. */
import type { Condition } from '../config/schema/condition.ts'
import { type Found, type ListRule, type PolicyRule, titleOf, writtenOf } from './facts.ts'
import { nearest } from './nearest.ts'
import { costRuleAt } from './quota.ts'

/** IANA's registry of HTTP methods: RFC 9110, PATCH, QUERY, and WebDAV with its extensions. */
const METHODS =
  'GET HEAD POST PUT DELETE OPTIONS PATCH TRACE CONNECT QUERY PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK REPORT SEARCH ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT LABEL LINK MERGE MKACTIVITY MKCALENDAR MKREDIRECTREF MKWORKSPACE ORDERPATCH REBIND UNBIND UNCHECKOUT UNLINK UPDATE UPDATEREDIRECTREF VERSION-CONTROL PURGE'.split(
    ' ',
  )

/** @param written the condition as written, of which the places are told */
function inCondition(condition: Condition, written: unknown, at: string, who: string): Found[] {
  const { method, not } = (written ?? {}) as { method?: unknown; not?: unknown }
  const names = Array.isArray(method) ? method : [method]
  const unknown = names.flatMap((name: unknown, index) =>
    typeof name === 'string' && !METHODS.includes(name.toUpperCase()) ? [{ name, index }] : [],
  )
  return [
    ...unknown.map(({ name, index }): Found => {
      const candidate = nearest(name, METHODS)
      return {
        code: 'unknown-method',
        path: `${at}.method${Array.isArray(method) ? `[${index}]` : ''}`,
        message: `${who} names the method ${name}, which is not a registered HTTP method.`,
        hint: candidate
          ? `Did you mean '${candidate}'?`
          : 'Correct it, or accept the finding where clients do send it.',
      }
    }),
    ...(condition.not ?? []).flatMap((taken, index) =>
      inCondition(
        taken,
        Array.isArray(not) ? not[index] : not,
        `${at}.not${Array.isArray(not) ? `[${index}]` : ''}`,
        who,
      ),
    ),
  ]
}

export const unknownMethods: PolicyRule = (policy, at, facts) => {
  const written = writtenOf(policy, facts)
  const who = `"${policy.name}"`
  const { cost } = written
  const rules = Array.isArray(cost) ? cost : typeof cost === 'object' ? (cost.rules ?? []) : []
  return [
    ...inCondition(policy.match, written.match, `${at}.match`, who),
    ...policy.cost.rules.flatMap(({ condition }, index) =>
      inCondition(condition, rules[index], costRuleAt(policy, at, facts, index), who),
    ),
  ]
}

export const unknownMethodsInList: ListRule = (entry, { written }) => {
  const entries = written[entry.list]
  const place = Number(/\d+/.exec(entry.at)![0])
  return inCondition(
    entry.condition,
    Array.isArray(entries) ? entries[place] : entries,
    entry.at,
    titleOf(entry),
  )
}
