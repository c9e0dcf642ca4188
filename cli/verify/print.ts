/** The report of `sluice verify` as text, as JSON and for a CI server. */
import type { Finding } from './finding.ts'
import { countText } from './words.ts'

const MARKS = { ok: '✓', problem: '✗', unknown: '–' } as const
/** The mark of a proof at a path that is made up: it says nothing about the routes of the app. */
const MADE_UP = '~'

const NONE_AT_MADE_UP =
  'No problem at paths that are made up. A route of the app may still answer before the limiter: name some with --path'

const problemsIn = (findings: Finding[]) =>
  findings.filter(({ status }) => status === 'problem').length

export function toText(findings: Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const lines = findings.map(
    ({ name, status, text, madeUp }) =>
      `${madeUp ? MADE_UP : MARKS[status]} ${name.padEnd(width)}  ${text}`,
  )
  const count = problemsIn(findings)
  const none = findings.some(({ madeUp }) => madeUp) ? NONE_AT_MADE_UP : 'No problem'
  return [...lines, count === 0 ? none : countText(count, 'problem')].join('\n')
}

export const toJson = (url: string, findings: Finding[]): string =>
  JSON.stringify({ v: 1, url, problems: problemsIn(findings), findings }, null, 2)

/** The format of JUnit, which CI servers read. */
export function toJunit(url: string, findings: Finding[]): string {
  const cases = findings.map(({ name, status, text }) => {
    const inside =
      status === 'problem'
        ? `<failure message="${escaped(text)}"/>`
        : status === 'unknown'
          ? `<skipped message="${escaped(text)}"/>`
          : `<system-out>${escaped(text)}</system-out>`
    return `  <testcase classname="sluice verify" name="${escaped(name)}">${inside}</testcase>`
  })
  const skipped = findings.filter(({ status }) => status === 'unknown').length
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="sluice verify ${escaped(url)}" tests="${findings.length}" failures="${problemsIn(findings)}" skipped="${skipped}">`,
    ...cases,
    '</testsuite>',
  ].join('\n')
}

const escaped = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
