import { type Found, type ListRule, type PolicyRule, titleOf, writtenOf } from './facts.ts'
import { didYouMean } from './nearest.ts'

/** IANA's HTTP Method Registry (RFC 9110, PATCH, QUERY, WebDAV and its extensions), and PURGE. */
const METHODS =
  'GET HEAD POST PUT DELETE OPTIONS PATCH TRACE CONNECT QUERY PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK REPORT SEARCH ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT LABEL LINK MERGE MKACTIVITY MKCALENDAR MKREDIRECTREF MKWORKSPACE ORDERPATCH REBIND UNBIND UNCHECKOUT UNLINK UPDATE UPDATEREDIRECTREF VERSION-CONTROL PURGE'.split(
    ' ',
  )

const OTHER_METHOD = 'Correct the method, or accept the finding if clients send it.'

const withPaths = (value: unknown, at: string): [unknown, string][] =>
  Array.isArray(value) ? value.map((item, index) => [item, `${at}[${index}]`]) : [[value, at]]

/** @param condition as written, because the parsed one does not show the paths */
function inCondition(condition: unknown, at: string, title: string): Found[] {
  const { method, not } = Object(condition)
  return [
    ...withPaths(method, `${at}.method`).flatMap(([name, path]) => {
      if (typeof name !== 'string' || METHODS.includes(name.toUpperCase())) return []
      return {
        path,
        message: `${title} uses the method ${name}, which is not a registered HTTP method.`,
        hint: didYouMean(name, METHODS, OTHER_METHOD),
      }
    }),
    ...(not
      ? withPaths(not, `${at}.not`).flatMap(([one, path]) => inCondition(one, path, title))
      : []),
  ]
}

export const unknownMethods: PolicyRule = (policy, at, facts) => {
  const title = `"${policy.name}"`
  const { match, cost, reserve = [] } = writtenOf(policy, facts)
  const rules = Array.isArray(cost)
    ? withPaths(cost, `${at}.cost`)
    : withPaths(Object(cost).rules, `${at}.cost.rules`)
  const shares = reserve.map(
    (rule, index) => [rule.match, `${at}.reserve[${index}].match`] as const,
  )
  return [[match, `${at}.match`] as const, ...rules, ...shares].flatMap(([condition, path]) =>
    inCondition(condition, path, title),
  )
}

export const unknownMethodsInList: ListRule = (entry) =>
  inCondition(entry.written, entry.at, titleOf(entry))
